with frequent as (
    select s.product_id, count(*) as times
    from shop_sales s join days d on d.day_id = s.sold_day
    where d.year in (2020, 2021)
    group by s.product_id, d.month_seq
    having count(*) > 6
), best as (
    select s.shopper_id, sum(s.quantity * s.sales_price) as total
    from shop_sales s
    where s.shopper_id is not null
    group by s.shopper_id
    having sum(s.quantity * s.sales_price) > 0.5 * (
        select max(total) from (
            select sum(t.quantity * t.sales_price) as total
            from shop_sales t join days d on d.day_id = t.sold_day
            where d.year in (2020, 2021) and t.shopper_id is not null
            group by t.shopper_id
        ) each_one
    )
)
select sum(sales) as sales
from (
    select m.quantity * m.list_price as sales
    from mail_sales m join days d on d.day_id = m.sold_day
    where d.year = 2021 and d.month between 1 and 6 and m.product_id in (select product_id from frequent) and m.shopper_id in (select shopper_id from best)
    union all
    select o.quantity * o.list_price as sales
    from online_sales o join days d on d.day_id = o.sold_day
    where d.year = 2021 and d.month between 1 and 6 and o.product_id in (select product_id from frequent) and o.shopper_id in (select shopper_id from best)
) x
