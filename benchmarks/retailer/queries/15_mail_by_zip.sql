select a.zip, sum(s.sales_price) as sales
from mail_sales s join shoppers c on c.shopper_id = s.shopper_id join addresses a on a.address_id = c.address_id join days d on d.day_id = s.sold_day
where (substr(a.zip, 1, 2) in ('00', '15', '23', '37', '48', '64') or a.state in ('CA', 'WA', 'GA') or s.sales_price > 150)
  and d.quarter = 2 and d.year = 2021
group by a.zip
order by a.zip
limit 100
