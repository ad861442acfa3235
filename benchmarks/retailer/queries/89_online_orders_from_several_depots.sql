with several as (
    select a.order_id, a.depot_id, b.depot_id as other
    from online_sales a join online_sales b on b.order_id = a.order_id
    where a.depot_id <> b.depot_id
)
select count(distinct s.order_id) as orders, sum(s.shipping) as shipping, sum(s.profit) as profit
from online_sales s join days d on d.day_id = s.shipped_day join addresses a on a.address_id = s.receiver_address_id join sites t on t.site_id = s.site_id
where d.day between date '2022-02-01' and date '2022-04-02' and a.state in ('IL', 'TX', 'OH')
  and s.order_id in (select order_id from several)
  and s.order_id in (select r.order_id from online_returns r join several w on w.order_id = r.order_id)
