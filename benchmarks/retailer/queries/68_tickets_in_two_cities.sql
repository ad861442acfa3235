select c.last_name, c.first_name, home.city, t.city as bought_in, t.ticket_id, t.total, t.tax, t.listed
from (
    select s.ticket_id, s.shopper_id, a.city, sum(s.sales_total) as total, sum(s.list_total) as listed, sum(s.tax) as tax
    from shop_sales s join days d on d.day_id = s.sold_day join shops h on h.shop_id = s.shop_id
        join households e on e.household_id = s.household_id join addresses a on a.address_id = s.address_id
    where d.of_month between 1 and 2 and (e.dependents = 5 or e.vehicles = 3) and d.year in (2020, 2021, 2022) and h.name in ('south', 'centre')
    group by s.ticket_id, s.shopper_id, a.city
) t join shoppers c on c.shopper_id = t.shopper_id join addresses home on home.address_id = c.address_id
where home.city <> t.city
order by c.last_name, t.ticket_id, c.first_name, home.city, t.city
limit 100
