select manager_id, sales, usual
from (
    select p.manager_id, sum(s.sales_price) as sales, avg(sum(s.sales_price)) over (partition by p.manager_id) as usual
    from shop_sales s join products p on p.product_id = s.product_id join days d on d.day_id = s.sold_day join shops h on h.shop_id = s.shop_id
    where d.month_seq between 1440 and 1451 and p.category in ('Women', 'Music', 'Men') and p.class in ('basic', 'gift', 'outdoor')
    group by p.manager_id, d.month
) x
where case when usual > 0 then abs(sales - usual) / usual end > 0.103
order by manager_id, usual, sales
limit 100
