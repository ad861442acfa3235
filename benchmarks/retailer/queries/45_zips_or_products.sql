select a.zip, a.city, sum(s.sales_price) as sales
from online_sales s join shoppers c on c.shopper_id = s.shopper_id join addresses a on a.address_id = c.address_id
    join products p on p.product_id = s.product_id join days d on d.day_id = s.sold_day
where (substr(a.zip, 1, 2) in ('05', '18', '32', '46') or p.code in (select code from products where product_id in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)))
  and d.quarter = 2 and d.year = 2022
group by a.zip, a.city
order by a.zip, a.city
limit 100
