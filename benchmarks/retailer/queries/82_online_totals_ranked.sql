select sum(s.paid) as total, p.category, p.class, grouping(p.category) + grouping(p.class) as level,
    rank() over (partition by grouping(p.category) + grouping(p.class), case when grouping(p.class) = 0 then p.category end order by sum(s.paid) desc) as place
from online_sales s join days d on d.day_id = s.sold_day join products p on p.product_id = s.product_id
where d.month_seq between 1452 and 1463
group by rollup (p.category, p.class)
order by level desc, case when level = 0 then p.category end, place, p.category, p.class
limit 100
