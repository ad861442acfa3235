with averages as (
    select s.product_id, avg(s.profit) as profit
    from shop_sales s
    where s.shop_id = 4
    group by s.product_id
    having avg(s.profit) > 0.9 * (select avg(t.profit) from shop_sales t where t.shop_id = 4 and t.address_id is null)
), worst as (
    select product_id, rank() over (order by profit, product_id) as place from averages
), best as (
    select product_id, rank() over (order by profit desc, product_id) as place from averages
)
select w.place, p.title as best, q.title as worst
from worst w join best b on b.place = w.place join products p on p.product_id = b.product_id join products q on q.product_id = w.product_id
where w.place < 11
order by w.place
