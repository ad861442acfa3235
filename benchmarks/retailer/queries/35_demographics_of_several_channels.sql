select a.state, g.gender, g.marital, g.dependents, count(*) as shoppers, min(g.dependents) as fewest, max(g.spending) as most, avg(g.spending) as usual
from shoppers c join addresses a on a.address_id = c.address_id join demographics g on g.demo_id = c.demo_id
where exists (select 1 from shop_sales s join days d on d.day_id = s.sold_day where s.shopper_id = c.shopper_id and d.year = 2021 and d.quarter < 4)
  and (exists (select 1 from online_sales s join days d on d.day_id = s.sold_day where s.shopper_id = c.shopper_id and d.year = 2021 and d.quarter < 4)
    or exists (select 1 from mail_sales s join days d on d.day_id = s.sold_day where s.receiver_id = c.shopper_id and d.year = 2021 and d.quarter < 4))
group by a.state, g.gender, g.marital, g.dependents
order by a.state, g.gender, g.marital, g.dependents
limit 100
