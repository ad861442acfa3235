select p.code, h.state, grouping(h.state) as of_all_states, avg(s.quantity) as quantity, avg(s.list_price) as listed,
    avg(s.coupon) as coupon, avg(s.sales_price) as price
from shop_sales s join demographics g on g.demo_id = s.demo_id join days d on d.day_id = s.sold_day
    join shops h on h.shop_id = s.shop_id join products p on p.product_id = s.product_id
where g.gender = 'F' and g.marital = 'D' and g.education = 'primary' and d.year = 2022
group by rollup (p.code, h.state)
order by p.code, h.state
limit 100
