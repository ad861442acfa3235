select h.name, sum(s.profit) as profit
from shop_sales s join days d on d.day_id = s.sold_day join shops h on h.shop_id = s.shop_id
    join (
        select zip from (
            select substr(a.zip, 1, 2) as zip from addresses a where a.city in ('Ashby', 'Glen', 'Midway', 'Quarry')
            intersect
            select substr(a.zip, 1, 2) as zip
            from addresses a join shoppers c on c.address_id = a.address_id
            where c.preferred = 'Y'
            group by substr(a.zip, 1, 2)
            having count(*) > 20
        ) near
    ) z on z.zip = substr(h.zip, 1, 2)
where d.quarter = 2 and d.year = 2022
group by h.name
order by h.name
limit 100
