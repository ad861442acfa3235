select sum(s.quantity) as quantity
from shop_sales s join shops h on h.shop_id = s.shop_id join demographics g on g.demo_id = s.demo_id
    join addresses a on a.address_id = s.address_id join days d on d.day_id = s.sold_day
where d.year = 2020
  and ((g.marital = 'M' and g.education = 'four years' and s.sales_price between 30 and 100)
    or (g.marital = 'D' and g.education = 'two years' and s.sales_price between 10 and 60)
    or (g.marital = 'S' and g.education = 'college' and s.sales_price between 50 and 200))
  and ((a.state in ('CO', 'OH', 'TX') and s.profit between 0 and 2000)
    or (a.state in ('OR', 'MN', 'KY') and s.profit between 150 and 3000)
    or (a.state in ('VA', 'CA', 'MS') and s.profit between 50 and 2500))
