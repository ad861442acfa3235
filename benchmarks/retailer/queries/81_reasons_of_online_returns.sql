select substr(x.reason, 1, 20) as reason, avg(s.quantity) as quantity, avg(r.cash) as cash, avg(r.fee) as fee
from online_sales s join online_returns r on r.order_id = s.order_id and r.product_id = s.product_id join pages w on w.page_id = s.page_id
    join demographics g on g.demo_id = s.demo_id join days d on d.day_id = s.sold_day join reasons x on x.reason_id = r.reason_id
    join addresses a on a.address_id = r.address_id
where d.year = 2021
  and ((g.marital = 'M' and s.sales_price between 10 and 150) or (g.marital = 'S' and s.sales_price between 5 and 100) or (g.marital = 'W' and s.sales_price between 15 and 200))
  and ((a.state in ('IN', 'OH', 'NY', 'TX', 'CA') and s.profit between -2000 and 2000) or (a.state in ('WI', 'KY', 'GA', 'AL') and s.profit between -1500 and 3000))
group by x.reason
order by reason, quantity, cash, fee
limit 100
