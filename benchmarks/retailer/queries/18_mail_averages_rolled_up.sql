select p.code, a.country, a.state, a.county, avg(cast(s.quantity as decimal(12,2))) as quantity,
    avg(cast(s.list_price as decimal(12,2))) as listed, avg(cast(s.coupon as decimal(12,2))) as coupon,
    avg(cast(c.birth_year as decimal(12,2))) as born
from mail_sales s join demographics g on g.demo_id = s.demo_id join shoppers c on c.shopper_id = s.shopper_id
    join addresses a on a.address_id = c.address_id join days d on d.day_id = s.sold_day join products p on p.product_id = s.product_id
where g.gender = 'M' and g.education = 'four years' and c.birth_month in (2, 5, 8, 9) and d.year = 2022 and a.state in ('TX', 'NY', 'MN', 'IA')
group by rollup (p.code, a.country, a.state, a.county)
order by a.country, a.state, a.county, p.code
limit 100
