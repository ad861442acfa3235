select p.code, p.title, p.current_price
from products p join stock t on t.product_id = p.product_id join days d on d.day_id = t.day_id join mail_sales s on s.product_id = p.product_id
where p.current_price between 20 and 30 and d.day between date '2021-02-01' and date '2021-04-02' and p.maker_id between 100 and 400 and t.on_hand between 100 and 200
group by p.code, p.title, p.current_price
order by p.code, p.title, p.current_price
limit 100
