with sold as (
    select product_id, address_id, sold_day, sales_total from shop_sales
    union all
    select product_id, address_id, sold_day, sales_total from mail_sales
    union all
    select product_id, address_id, sold_day, sales_total from online_sales
)
select p.code, sum(x.sales_total) as total
from sold x join products p on p.product_id = x.product_id join days d on d.day_id = x.sold_day join addresses a on a.address_id = x.address_id
where p.code in (select code from products where color in ('slate', 'azure', 'coral')) and d.year = 2021 and d.month = 2 and a.gmt_offset = -6
group by p.code
order by total, p.code
limit 100
