select maker_id, sales, usual
from (
    select p.maker_id, sum(s.sales_price) as sales, avg(sum(s.sales_price)) over (partition by p.maker_id) as usual
    from shop_sales s join products p on p.product_id = s.product_id join days d on d.day_id = s.sold_day join shops h on h.shop_id = s.shop_id
    where d.month_seq between 1440 and 1451 and p.category in ('Books', 'Children', 'Music') and p.class in ('gift', 'daily', 'luxury', 'spare')
    group by p.maker_id, d.quarter
) x
where case when usual > 0 then abs(sales - usual) / usual end > 0.103
order by usual, sales, maker_id
limit 100
