select h.name, h.code, h.city, h.state,
    sum(case when r.returned_day - s.sold_day <= 30 then 1 else 0 end) as up_to_30,
    sum(case when r.returned_day - s.sold_day > 30 and r.returned_day - s.sold_day <= 60 then 1 else 0 end) as up_to_60,
    sum(case when r.returned_day - s.sold_day > 60 then 1 else 0 end) as later
from shop_sales s join shop_returns r on r.ticket_id = s.ticket_id and r.product_id = s.product_id and r.shopper_id = s.shopper_id
    join shops h on h.shop_id = s.shop_id join days d on d.day_id = r.returned_day
where d.year = 2022 and d.month = 8
group by h.name, h.code, h.city, h.state
order by h.name, h.code, h.city, h.state
limit 100
