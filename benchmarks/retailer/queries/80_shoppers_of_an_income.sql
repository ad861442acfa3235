select c.code, concat(coalesce(c.last_name, ''), ', ', coalesce(c.first_name, '')) as name
from shoppers c join addresses a on a.address_id = c.address_id join demographics g on g.demo_id = c.demo_id
    join households e on e.household_id = c.household_id join income_bands i on i.band_id = e.band_id join shop_returns r on r.shopper_id = c.shopper_id
where a.city = 'Oakham' and i.lowest >= 30000 and i.highest <= 80000
order by c.code, name
limit 100
