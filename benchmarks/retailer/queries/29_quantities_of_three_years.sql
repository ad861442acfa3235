select p.code, h.code as shop, max(s.quantity) as sold, max(r.quantity) as returned, max(m.quantity) as again
from shop_sales s join shop_returns r on r.shopper_id = s.shopper_id and r.product_id = s.product_id and r.ticket_id = s.ticket_id
    join mail_sales m on m.shopper_id = r.shopper_id and m.product_id = r.product_id
    join days d on d.day_id = s.sold_day join days e on e.day_id = r.returned_day join days f on f.day_id = m.sold_day
    join shops h on h.shop_id = s.shop_id join products p on p.product_id = s.product_id
where d.month = 9 and d.year = 2020 and e.month between 9 and 12 and e.year = 2020 and f.year in (2020, 2021, 2022)
group by p.code, h.code
order by p.code, h.code
limit 100
