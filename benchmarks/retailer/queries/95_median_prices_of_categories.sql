select p.category, median(cast(s.sales_price as double)) as middle, count(*) as lines, max(s.sales_price) as most
from mail_sales s join products p on p.product_id = s.product_id join days d on d.day_id = s.sold_day
where d.weekend = 'Y'
group by p.category
order by p.category
