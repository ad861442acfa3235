with shop as (
    select p.maker_id, sum(s.sales_total) as sales
    from shop_sales s join days d on d.day_id = s.sold_day join addresses a on a.address_id = s.address_id join products p on p.product_id = s.product_id
    where p.maker_id in (select maker_id from products where category = 'Electronics') and d.year = 2022 and d.month = 5 and a.gmt_offset = -5
    group by p.maker_id
), mail as (
    select p.maker_id, sum(s.sales_total) as sales
    from mail_sales s join days d on d.day_id = s.sold_day join addresses a on a.address_id = s.address_id join products p on p.product_id = s.product_id
    where p.maker_id in (select maker_id from products where category = 'Electronics') and d.year = 2022 and d.month = 5 and a.gmt_offset = -5
    group by p.maker_id
), online as (
    select p.maker_id, sum(s.sales_total) as sales
    from online_sales s join days d on d.day_id = s.sold_day join addresses a on a.address_id = s.address_id join products p on p.product_id = s.product_id
    where p.maker_id in (select maker_id from products where category = 'Electronics') and d.year = 2022 and d.month = 5 and a.gmt_offset = -5
    group by p.maker_id
)
select maker_id, sum(sales) as total
from (select maker_id, sales from shop union all select maker_id, sales from mail union all select maker_id, sales from online) x
group by maker_id
order by total, maker_id
limit 100
