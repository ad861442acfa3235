select h.name, p.title, c.revenue, p.current_price, p.unit_cost, p.brand
from shops h join (
        select shop_id, avg(revenue) as average
        from (select s.shop_id, s.product_id, sum(s.sales_price) as revenue from shop_sales s join days d on d.day_id = s.sold_day
              where d.month_seq between 1452 and 1463 group by s.shop_id, s.product_id) x
        group by shop_id
    ) b on b.shop_id = h.shop_id
    join (
        select s.shop_id, s.product_id, sum(s.sales_price) as revenue from shop_sales s join days d on d.day_id = s.sold_day
        where d.month_seq between 1452 and 1463 group by s.shop_id, s.product_id
    ) c on c.shop_id = b.shop_id
    join products p on p.product_id = c.product_id
where c.revenue <= 0.1 * b.average
order by h.name, p.title, c.revenue, p.current_price, p.unit_cost, p.brand
limit 100
