select d.year, p.category_id, p.category, sum(s.sales_total) as sales
from shop_sales s join days d on d.day_id = s.sold_day join products p on p.product_id = s.product_id
where p.manager_id = 1 and d.month = 12 and d.year = 2021
group by d.year, p.category_id, p.category
order by sales desc, d.year, p.category_id, p.category
limit 100
