select sum(s.profit) / sum(s.sales_total) as margin, p.category, p.class, grouping(p.category) + grouping(p.class) as level,
    rank() over (partition by grouping(p.category) + grouping(p.class), case when grouping(p.class) = 0 then p.category end
        order by sum(s.profit) / sum(s.sales_total)) as place
from shop_sales s join days d on d.day_id = s.sold_day join products p on p.product_id = s.product_id join shops h on h.shop_id = s.shop_id
where d.year = 2021 and h.market_id in (1, 2, 4)
group by rollup (p.category, p.class)
order by level desc, case when level = 0 then p.category end, place, p.category, p.class
limit 100
