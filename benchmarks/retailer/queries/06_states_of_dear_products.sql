select a.state, count(*) as lines
from addresses a join shoppers c on c.address_id = a.address_id join shop_sales s on s.shopper_id = c.shopper_id
    join days d on d.day_id = s.sold_day join products p on p.product_id = s.product_id
where d.month_seq = (select distinct month_seq from days where year = 2021 and month = 1)
  and p.current_price > 1.2 * (select avg(q.current_price) from products q where q.category = p.category)
group by a.state
having count(*) >= 10
order by lines, a.state
limit 100
