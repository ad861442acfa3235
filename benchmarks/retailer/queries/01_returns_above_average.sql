with returned as (
    select r.shopper_id, r.shop_id, sum(r.amount) as total
    from shop_returns r join days d on r.returned_day = d.day_id
    where d.year = 2021
    group by r.shopper_id, r.shop_id
)
select s.code
from returned a join shops h on h.shop_id = a.shop_id join shoppers s on s.shopper_id = a.shopper_id
where a.total > (select avg(b.total) * 1.2 from returned b where b.shop_id = a.shop_id)
  and h.market_id in (1, 2, 3)
order by s.code
limit 100
