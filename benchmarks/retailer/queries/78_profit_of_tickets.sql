select c.last_name, c.first_name, substr(t.city, 1, 30) as city, t.ticket_id, t.coupon, t.profit
from (
    select s.ticket_id, s.shopper_id, h.city, sum(s.coupon) as coupon, sum(s.profit) as profit
    from shop_sales s join days d on d.day_id = s.sold_day join shops h on h.shop_id = s.shop_id join households e on e.household_id = s.household_id
    where (e.dependents = 6 or e.vehicles > 2) and d.weekday = 1 and d.year in (2020, 2021, 2022) and h.employees between 200 and 295
    group by s.ticket_id, s.shopper_id, h.city
) t join shoppers c on c.shopper_id = t.shopper_id
order by c.last_name, c.first_name, city, t.profit, t.ticket_id
limit 100
