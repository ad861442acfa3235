with bought as (
    select c.last_name, c.first_name, h.name, p.color, p.size, sum(s.paid) as paid
    from shop_sales s join shop_returns r on r.ticket_id = s.ticket_id and r.product_id = s.product_id
        join shops h on h.shop_id = s.shop_id join products p on p.product_id = s.product_id
        join shoppers c on c.shopper_id = s.shopper_id join addresses a on a.address_id = c.address_id
    where h.market_id in (1, 3) and a.state = 'TX'
    group by c.last_name, c.first_name, h.name, p.color, p.size
)
select last_name, first_name, name, sum(paid) as total
from bought
where color = 'teal'
group by last_name, first_name, name
having sum(paid) > (select 0.05 * avg(paid) from bought)
order by last_name, first_name, name
