with returned as (
    select r.returner_id, a.state, sum(r.amount) as total
    from online_returns r join days d on d.day_id = r.returned_day join addresses a on a.address_id = r.address_id
    where d.year = 2022
    group by r.returner_id, a.state
)
select c.code, c.salutation, c.first_name, c.last_name, x.state, x.total
from returned x join shoppers c on c.shopper_id = x.returner_id join addresses b on b.address_id = c.address_id
where x.total > (select avg(y.total) * 1.2 from returned y where y.state = x.state) and b.state = 'GA'
order by c.code, c.salutation, c.first_name, c.last_name, x.state, x.total
limit 100
