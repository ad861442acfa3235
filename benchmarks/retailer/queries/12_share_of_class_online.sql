select p.code, p.category, p.class, p.current_price, sum(s.sales_total) as revenue,
    sum(s.sales_total) * 100 / sum(sum(s.sales_total)) over (partition by p.class) as share
from online_sales s join products p on p.product_id = s.product_id join days d on d.day_id = s.sold_day
where p.category in ('Sports', 'Books', 'Garden') and d.day between date '2022-02-22' and date '2022-03-24'
group by p.code, p.category, p.class, p.current_price
order by p.category, p.class, p.code, share, p.current_price
limit 100
