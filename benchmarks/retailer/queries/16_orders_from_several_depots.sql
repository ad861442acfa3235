select count(distinct s.order_id) as orders, sum(s.shipping) as shipping, sum(s.profit) as profit
from mail_sales s join days d on d.day_id = s.shipped_day join addresses a on a.address_id = s.receiver_address_id
    join centres c on c.centre_id = s.centre_id
where d.day between date '2022-02-01' and date '2022-04-02' and a.state = 'GA'
  and exists (select 1 from mail_sales t where t.order_id = s.order_id and t.depot_id <> s.depot_id)
  and not exists (select 1 from mail_returns r where r.order_id = s.order_id)
