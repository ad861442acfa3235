with shop as (
    select p.code, sum(s.sales_total) as sales from shop_sales s join products p on p.product_id = s.product_id join days d on d.day_id = s.sold_day join addresses a on a.address_id = s.address_id
    where p.code in (select code from products where category = 'Children') and d.year = 2020 and d.month = 9 and a.gmt_offset = -6
    group by p.code
), online as (
    select p.code, sum(s.sales_total) as sales from online_sales s join products p on p.product_id = s.product_id join days d on d.day_id = s.sold_day join addresses a on a.address_id = s.address_id
    where p.code in (select code from products where category = 'Children') and d.year = 2020 and d.month = 9 and a.gmt_offset = -6
    group by p.code
)
select code, sum(sales) as total
from (select code, sales from shop union all select code, sales from online) x
group by code
order by code, total
limit 100
