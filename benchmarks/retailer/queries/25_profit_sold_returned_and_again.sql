select p.code, p.title, h.code as shop, h.name, sum(s.profit) as sold, sum(r.loss) as lost, sum(m.profit) as again
from shop_sales s join shop_returns r on r.shopper_id = s.shopper_id and r.product_id = s.product_id and r.ticket_id = s.ticket_id
    join mail_sales m on m.shopper_id = r.shopper_id and m.product_id = r.product_id
    join days d on d.day_id = s.sold_day join days e on e.day_id = r.returned_day join days f on f.day_id = m.sold_day
    join shops h on h.shop_id = s.shop_id join products p on p.product_id = s.product_id
where d.year = 2021 and d.month = 4 and e.year = 2021 and e.month between 4 and 10 and f.year = 2021 and f.month between 4 and 10
group by p.code, p.title, h.code, h.name
order by p.code, p.title, h.code, h.name
limit 100
