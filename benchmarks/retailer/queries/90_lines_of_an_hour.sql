select count(*) as lines
from shop_sales s join clock k on k.time_id = s.sold_time join households e on e.household_id = s.household_id join shops h on h.shop_id = s.shop_id
where k.hour = 20 and k.minute >= 30 and e.dependents = 7 and h.name = 'centre'
