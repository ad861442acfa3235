select category, class, brand, name, month, sales, usual
from (
    select p.category, p.class, p.brand, h.name, d.month, sum(s.sales_price) as sales, avg(sum(s.sales_price)) over (partition by p.category, p.brand, h.name) as usual
    from shop_sales s join products p on p.product_id = s.product_id join days d on d.day_id = s.sold_day join shops h on h.shop_id = s.shop_id
    where d.year = 2021 and ((p.category in ('Books', 'Electronics') and p.class in ('basic', 'premium')) or (p.category in ('Men', 'Shoes') and p.class in ('daily', 'gift')))
    group by p.category, p.class, p.brand, h.name, d.month
) x
where case when usual <> 0 then abs(sales - usual) / usual end > 0.103
order by sales - usual, name, category, class, brand, month
limit 100
