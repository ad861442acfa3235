select w.state, p.code,
    sum(case when d.day < date '2022-03-11' then s.sales_price - coalesce(r.cash, 0) else 0 end) as before,
    sum(case when d.day >= date '2022-03-11' then s.sales_price - coalesce(r.cash, 0) else 0 end) as after
from mail_sales s left join mail_returns r on r.order_id = s.order_id and r.product_id = s.product_id
    join depots w on w.depot_id = s.depot_id join products p on p.product_id = s.product_id join days d on d.day_id = s.sold_day
where p.current_price between 10 and 25 and d.day between date '2022-02-09' and date '2022-04-10'
group by w.state, p.code
order by w.state, p.code
limit 100
