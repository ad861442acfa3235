with online as (
    select s.product_id, d.day, sum(sum(s.sales_price)) over (partition by s.product_id order by d.day rows between unbounded preceding and current row) as so_far
    from online_sales s join days d on d.day_id = s.sold_day
    where d.month_seq between 1452 and 1463
    group by s.product_id, d.day
), shop as (
    select s.product_id, d.day, sum(sum(s.sales_price)) over (partition by s.product_id order by d.day rows between unbounded preceding and current row) as so_far
    from shop_sales s join days d on d.day_id = s.sold_day
    where d.month_seq between 1452 and 1463
    group by s.product_id, d.day
)
select product_id, day, online_so_far, shop_so_far, online_most, shop_most
from (
    select product_id, day, online_so_far, shop_so_far,
        max(online_so_far) over (partition by product_id order by day rows between unbounded preceding and current row) as online_most,
        max(shop_so_far) over (partition by product_id order by day rows between unbounded preceding and current row) as shop_most
    from (
        select coalesce(o.product_id, s.product_id) as product_id, coalesce(o.day, s.day) as day, o.so_far as online_so_far, s.so_far as shop_so_far
        from online o full outer join shop s on s.product_id = o.product_id and s.day = o.day
    ) x
) y
where online_most > shop_most
order by product_id, day
limit 100
