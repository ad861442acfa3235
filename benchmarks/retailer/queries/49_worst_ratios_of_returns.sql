select channel, product_id, ratio, quantity_place, money_place
from (
    select 'online' as channel, product_id, ratio, rank() over (order by ratio) as quantity_place, rank() over (order by money) as money_place
    from (
        select s.product_id, cast(sum(coalesce(r.quantity, 0)) as double) / sum(coalesce(s.quantity, 0)) as ratio,
            cast(sum(coalesce(r.amount, 0)) as double) / cast(sum(coalesce(s.paid, 0)) as double) as money
        from online_sales s left join online_returns r on r.order_id = s.order_id and r.product_id = s.product_id join days d on d.day_id = s.sold_day
        where r.amount > 500 and s.profit > 1 and s.paid > 0 and s.quantity > 0 and d.year = 2021 and d.quarter = 4
        group by s.product_id
    ) x
    union
    select 'mail' as channel, product_id, ratio, rank() over (order by ratio) as quantity_place, rank() over (order by money) as money_place
    from (
        select s.product_id, cast(sum(coalesce(r.quantity, 0)) as double) / sum(coalesce(s.quantity, 0)) as ratio,
            cast(sum(coalesce(r.amount, 0)) as double) / cast(sum(coalesce(s.paid, 0)) as double) as money
        from mail_sales s left join mail_returns r on r.order_id = s.order_id and r.product_id = s.product_id join days d on d.day_id = s.sold_day
        where r.amount > 500 and s.profit > 1 and s.paid > 0 and s.quantity > 0 and d.year = 2021 and d.quarter = 4
        group by s.product_id
    ) y
) z
where quantity_place <= 10 or money_place <= 10
order by channel, quantity_place, money_place, product_id
limit 100
