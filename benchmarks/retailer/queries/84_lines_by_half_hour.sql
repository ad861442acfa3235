select *
from (select count(*) as to_half_past_9 from shop_sales s join households e on e.household_id = s.household_id join clock k on k.time_id = s.sold_time join shops h on h.shop_id = s.shop_id
      where k.hour = 9 and k.minute < 30 and ((e.dependents = 4 and e.vehicles <= 5) or (e.dependents = 2 and e.vehicles <= 4)) and h.name = 'north') a
    cross join (select count(*) as to_ten from shop_sales s join households e on e.household_id = s.household_id join clock k on k.time_id = s.sold_time join shops h on h.shop_id = s.shop_id
      where k.hour = 9 and k.minute >= 30 and ((e.dependents = 4 and e.vehicles <= 5) or (e.dependents = 2 and e.vehicles <= 4)) and h.name = 'north') b
    cross join (select count(*) as to_half_past_10 from shop_sales s join households e on e.household_id = s.household_id join clock k on k.time_id = s.sold_time join shops h on h.shop_id = s.shop_id
      where k.hour = 10 and k.minute < 30 and ((e.dependents = 4 and e.vehicles <= 5) or (e.dependents = 2 and e.vehicles <= 4)) and h.name = 'north') c
