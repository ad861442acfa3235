select c.last_name, c.first_name, home.city, t.city as bought_in, t.ticket_id, t.coupon, t.profit
from (
    select s.ticket_id, s.shopper_id, a.city, sum(s.coupon) as coupon, sum(s.profit) as profit
    from shop_sales s join days d on d.day_id = s.sold_day join shops h on h.shop_id = s.shop_id
        join households e on e.household_id = s.household_id join addresses a on a.address_id = s.address_id
    where (e.dependents = 4 or e.vehicles = 3) and d.weekday in (6, 0) and d.year in (2020, 2021, 2022) and h.name in ('north', 'east', 'airport')
    group by s.ticket_id, s.shopper_id, a.city
) t join shoppers c on c.shopper_id = t.shopper_id join addresses home on home.address_id = c.address_id
where home.city <> t.city
order by c.last_name, c.first_name, home.city, t.city, t.ticket_id
limit 100
