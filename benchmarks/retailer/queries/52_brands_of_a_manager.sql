select d.year, p.brand_id, p.brand, sum(s.sales_total) as sales
from days d join shop_sales s on s.sold_day = d.day_id join products p on p.product_id = s.product_id
where p.manager_id between 1 and 3 and d.month = 11 and d.year = 2022
group by d.year, p.brand_id, p.brand
order by d.year, sales desc, p.brand_id, p.brand
limit 100
