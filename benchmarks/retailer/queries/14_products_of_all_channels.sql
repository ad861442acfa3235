with common as (
    select p.product_id
    from products p join (
        select q.brand_id, q.class_id, q.category_id from shop_sales s join products q on q.product_id = s.product_id join days d on d.day_id = s.sold_day where d.year between 2020 and 2022
        intersect
        select q.brand_id, q.class_id, q.category_id from mail_sales s join products q on q.product_id = s.product_id join days d on d.day_id = s.sold_day where d.year between 2020 and 2022
        intersect
        select q.brand_id, q.class_id, q.category_id from online_sales s join products q on q.product_id = s.product_id join days d on d.day_id = s.sold_day where d.year between 2020 and 2022
    ) k on k.brand_id = p.brand_id and k.class_id = p.class_id and k.category_id = p.category_id
), usual as (
    select avg(quantity * list_price) as average
    from (
        select quantity, list_price from shop_sales s join days d on d.day_id = s.sold_day where d.year between 2020 and 2022
        union all
        select quantity, list_price from mail_sales s join days d on d.day_id = s.sold_day where d.year between 2020 and 2022
        union all
        select quantity, list_price from online_sales s join days d on d.day_id = s.sold_day where d.year between 2020 and 2022
    ) x
)
select channel, brand_id, class_id, category_id, sum(sales) as sales, sum(lines) as lines
from (
    select 'shop' as channel, p.brand_id, p.class_id, p.category_id, sum(s.quantity * s.list_price) as sales, count(*) as lines
    from shop_sales s join products p on p.product_id = s.product_id join days d on d.day_id = s.sold_day
    where s.product_id in (select product_id from common) and d.year = 2022 and d.month = 11
    group by p.brand_id, p.class_id, p.category_id
    having sum(s.quantity * s.list_price) > (select average from usual)
    union all
    select 'mail' as channel, p.brand_id, p.class_id, p.category_id, sum(s.quantity * s.list_price) as sales, count(*) as lines
    from mail_sales s join products p on p.product_id = s.product_id join days d on d.day_id = s.sold_day
    where s.product_id in (select product_id from common) and d.year = 2022 and d.month = 11
    group by p.brand_id, p.class_id, p.category_id
    having sum(s.quantity * s.list_price) > (select average from usual)
) y
group by rollup (channel, brand_id, class_id, category_id)
order by channel, brand_id, class_id, category_id
limit 100
