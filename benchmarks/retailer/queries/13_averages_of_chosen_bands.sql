select avg(s.quantity) as quantity, avg(s.sales_total) as sales, avg(s.cost_total) as cost, sum(s.cost_total) as total
from shop_sales s join shops h on h.shop_id = s.shop_id join demographics g on g.demo_id = s.demo_id
    join households e on e.household_id = s.household_id join addresses a on a.address_id = s.address_id join days d on d.day_id = s.sold_day
where d.year = 2021
  and ((g.marital = 'M' and g.education = 'advanced' and s.sales_price between 20 and 60 and e.dependents = 3)
    or (g.marital = 'S' and g.education = 'college' and s.sales_price between 10 and 40 and e.dependents = 1)
    or (g.marital = 'W' and g.education = 'two years' and s.sales_price between 30 and 90 and e.dependents = 1))
  and ((a.state in ('TX', 'OH', 'IL') and s.profit between -2000 and 200)
    or (a.state in ('OR', 'NE', 'KY') and s.profit between -1500 and 300)
    or (a.state in ('VA', 'TX', 'MS') and s.profit between -500 and 2500))
