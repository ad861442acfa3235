select p.code, avg(s.quantity) as quantity, avg(s.list_price) as listed, avg(s.coupon) as coupon, avg(s.sales_price) as price
from shop_sales s join demographics g on g.demo_id = s.demo_id join days d on d.day_id = s.sold_day
    join products p on p.product_id = s.product_id join campaigns k on k.campaign_id = s.campaign_id
where g.gender = 'F' and g.marital = 'S' and g.education = 'college' and (k.by_email = 'N' or k.by_event = 'N') and d.year = 2021
group by p.code
order by p.code
limit 100
