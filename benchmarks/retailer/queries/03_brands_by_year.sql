select d.year, p.brand_id, p.brand, sum(s.discount) as given
from shop_sales s join days d on d.day_id = s.sold_day join products p on p.product_id = s.product_id
where p.maker_id between 100 and 140 and d.month = 11
group by d.year, p.brand_id, p.brand
order by d.year, given desc, p.brand_id, p.brand
limit 100
