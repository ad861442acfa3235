select g.gender, g.marital, g.education, count(*) as shoppers, g.spending, g.credit
from shoppers c join addresses a on a.address_id = c.address_id join demographics g on g.demo_id = c.demo_id
where a.state in ('KY', 'GA', 'NY', 'TX', 'OH')
  and exists (select 1 from shop_sales s join days d on d.day_id = s.sold_day where s.shopper_id = c.shopper_id and d.year = 2021 and d.month between 4 and 6)
  and not exists (select 1 from online_sales s join days d on d.day_id = s.sold_day where s.shopper_id = c.shopper_id and d.year = 2021 and d.month between 4 and 6)
  and not exists (select 1 from mail_sales s join days d on d.day_id = s.sold_day where s.receiver_id = c.shopper_id and d.year = 2021 and d.month between 4 and 6)
group by g.gender, g.marital, g.education, g.spending, g.credit
order by g.gender, g.marital, g.education, g.spending, g.credit
limit 100
