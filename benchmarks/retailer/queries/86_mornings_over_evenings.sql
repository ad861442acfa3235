select cast(a.lines as decimal(15,4)) / cast(b.lines as decimal(15,4)) as ratio
from (select count(*) as lines from online_sales s join households e on e.household_id = s.household_id join clock k on k.time_id = s.sold_time join pages w on w.page_id = s.page_id
      where k.hour between 8 and 9 and e.dependents = 6 and w.letters between 2000 and 6000) a
    cross join (select count(*) as lines from online_sales s join households e on e.household_id = s.household_id join clock k on k.time_id = s.sold_time join pages w on w.page_id = s.page_id
      where k.hour between 19 and 20 and e.dependents = 6 and w.letters between 2000 and 6000) b
order by ratio
