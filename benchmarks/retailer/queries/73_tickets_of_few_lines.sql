select c.last_name, c.first_name, c.salutation, c.preferred, t.ticket_id, t.lines
from (
    select s.ticket_id, s.shopper_id, count(*) as lines
    from shop_sales s join days d on d.day_id = s.sold_day join shops h on h.shop_id = s.shop_id join households e on e.household_id = s.household_id
    where d.of_month between 1 and 2 and (e.potential = '>10000' or e.potential = '0-500') and e.vehicles > 0 and d.year in (2020, 2021, 2022)
    group by s.ticket_id, s.shopper_id
) t join shoppers c on c.shopper_id = t.shopper_id
where t.lines between 1 and 2
order by t.lines desc, c.last_name, c.first_name, c.salutation, c.preferred, t.ticket_id
limit 1000
