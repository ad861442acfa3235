select p.title, p.brand, p.class, p.category, avg(t.on_hand) as on_hand
from stock t join days d on d.day_id = t.day_id join products p on p.product_id = t.product_id
where d.year = 2021
group by rollup (p.title, p.brand, p.class, p.category)
order by on_hand, p.title, p.brand, p.class, p.category
limit 100
