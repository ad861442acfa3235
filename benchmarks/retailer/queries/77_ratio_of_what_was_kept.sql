with shop as (
    select d.year, s.product_id, s.shopper_id, sum(s.quantity) as quantity, sum(s.unit_cost) as cost
    from shop_sales s left join shop_returns r on r.ticket_id = s.ticket_id and r.product_id = s.product_id join days d on d.day_id = s.sold_day
    where r.ticket_id is null and d.year = 2021
    group by d.year, s.product_id, s.shopper_id
), mail as (
    select d.year, s.product_id, s.shopper_id, sum(s.quantity) as quantity, sum(s.unit_cost) as cost
    from mail_sales s left join mail_returns r on r.order_id = s.order_id and r.product_id = s.product_id join days d on d.day_id = s.sold_day
    where r.order_id is null and d.year = 2021
    group by d.year, s.product_id, s.shopper_id
)
select s.product_id, s.shopper_id, round(cast(s.quantity as double) / coalesce(m.quantity, 1), 2) as ratio, s.quantity, s.cost, coalesce(m.quantity, 0) as by_mail
from shop s join mail m on m.product_id = s.product_id and m.shopper_id = s.shopper_id
where coalesce(m.quantity, 0) > 0
order by s.quantity desc, s.cost desc, s.product_id, s.shopper_id, ratio
limit 100
