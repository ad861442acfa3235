select g.gender, g.marital, g.education, count(*) as shoppers, g.credit
from shoppers c join addresses a on a.address_id = c.address_id join demographics g on g.demo_id = c.demo_id
where a.state in ('NY', 'TX', 'OH', 'GA', 'CO')
  and exists (select 1 from shop_sales s join days d on d.day_id = s.sold_day where s.shopper_id = c.shopper_id and d.year = 2022 and d.month between 1 and 4)
  and (exists (select 1 from online_sales s join days d on d.day_id = s.sold_day where s.shopper_id = c.shopper_id and d.year = 2022 and d.month between 1 and 4)
    or exists (select 1 from mail_sales s join days d on d.day_id = s.sold_day where s.receiver_id = c.shopper_id and d.year = 2022 and d.month between 1 and 4))
group by g.gender, g.marital, g.education, g.credit
order by g.gender, g.marital, g.education, g.credit
limit 100
