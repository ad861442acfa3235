select category, brand, sales, place
from (
    select p.category, p.brand, sum(s.sales_total) as sales, row_number() over (partition by p.category order by sum(s.sales_total) desc, p.brand) as place
    from shop_sales s join products p on p.product_id = s.product_id
    group by p.category, p.brand
) x
where place <= 3
order by category, place
