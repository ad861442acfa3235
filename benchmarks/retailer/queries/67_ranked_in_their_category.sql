select category, class, brand, quarter, shop_id, sales, place
from (
    select category, class, brand, quarter, shop_id, sales, rank() over (partition by category order by sales desc) as place
    from (
        select p.category, p.class, p.brand, d.quarter, s.shop_id, sum(coalesce(s.sales_price * s.quantity, 0)) as sales
        from shop_sales s join days d on d.day_id = s.sold_day join products p on p.product_id = s.product_id join shops h on h.shop_id = s.shop_id
        where d.month_seq between 1452 and 1463
        group by rollup (p.category, p.class, p.brand, d.quarter, s.shop_id)
    ) x
) y
where place <= 100
order by category, class, brand, quarter, shop_id, sales, place
limit 100
