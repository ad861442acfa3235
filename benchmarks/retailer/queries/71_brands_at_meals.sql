select p.brand_id, p.brand, k.hour, k.minute, sum(x.price) as sales
from products p join (
        select sales_total as price, sold_day, product_id, sold_time from online_sales s join days d on d.day_id = s.sold_day where d.month = 11 and d.year = 2021
        union all
        select sales_total as price, sold_day, product_id, sold_time from mail_sales s join days d on d.day_id = s.sold_day where d.month = 11 and d.year = 2021
        union all
        select sales_total as price, sold_day, product_id, sold_time from shop_sales s join days d on d.day_id = s.sold_day where d.month = 11 and d.year = 2021
    ) x on x.product_id = p.product_id join clock k on k.time_id = x.sold_time
where p.manager_id between 1 and 5 and (k.meal = 'breakfast' or k.meal = 'dinner')
group by p.brand_id, p.brand, k.hour, k.minute
order by sales desc, p.brand_id, p.brand, k.hour, k.minute
limit 1000
