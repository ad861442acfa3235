select h.name, h.code,
    sum(case when d.weekday_name = 'Sunday' then s.sales_price end) as sunday, sum(case when d.weekday_name = 'Monday' then s.sales_price end) as monday,
    sum(case when d.weekday_name = 'Tuesday' then s.sales_price end) as tuesday, sum(case when d.weekday_name = 'Wednesday' then s.sales_price end) as wednesday,
    sum(case when d.weekday_name = 'Thursday' then s.sales_price end) as thursday, sum(case when d.weekday_name = 'Friday' then s.sales_price end) as friday,
    sum(case when d.weekday_name = 'Saturday' then s.sales_price end) as saturday
from shop_sales s join days d on d.day_id = s.sold_day join shops h on h.shop_id = s.shop_id
where d.year = 2021
group by h.name, h.code
order by h.name, h.code
limit 100
