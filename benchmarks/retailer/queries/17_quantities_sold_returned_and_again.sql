select p.code, h.state, count(s.quantity) as sold, avg(s.quantity) as average, stddev_samp(s.quantity) as deviation,
    stddev_samp(s.quantity) / avg(s.quantity) as variation, count(r.quantity) as returned, avg(r.quantity) as returned_average,
    count(m.quantity) as again, avg(m.quantity) as again_average
from shop_sales s join shop_returns r on r.shopper_id = s.shopper_id and r.product_id = s.product_id and r.ticket_id = s.ticket_id
    join mail_sales m on m.shopper_id = r.shopper_id and m.product_id = r.product_id
    join days d on d.day_id = s.sold_day join days e on e.day_id = r.returned_day join days f on f.day_id = m.sold_day
    join shops h on h.shop_id = s.shop_id join products p on p.product_id = s.product_id
where d.quarter_name = '2021Q1' and e.quarter_name in ('2021Q1', '2021Q2', '2021Q3') and f.quarter_name in ('2021Q1', '2021Q2', '2021Q3')
group by p.code, h.state
order by p.code, h.state
limit 100
