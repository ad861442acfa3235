select h.state, h.name, d.quarter_name, sum(s.paid) as paid, sum(s.profit) as profit
from shop_sales s join shops h on h.shop_id = s.shop_id join days d on d.day_id = s.sold_day
where d.year in (2021, 2022)
group by grouping sets ((h.state, d.quarter_name), (h.name), (d.quarter_name), ())
order by h.state, h.name, d.quarter_name
