select count(*) as shoppers
from (
    select distinct c.last_name, c.first_name, d.day from shop_sales s join days d on d.day_id = s.sold_day join shoppers c on c.shopper_id = s.shopper_id where d.year = 2021
    intersect
    select distinct c.last_name, c.first_name, d.day from mail_sales s join days d on d.day_id = s.sold_day join shoppers c on c.shopper_id = s.shopper_id where d.year = 2021
    intersect
    select distinct c.last_name, c.first_name, d.day from online_sales s join days d on d.day_id = s.sold_day join shoppers c on c.shopper_id = s.shopper_id where d.year = 2021
) x
