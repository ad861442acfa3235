select shopper_id, sum(kept) as total
from (
    select s.shopper_id, case when r.quantity is not null then (s.quantity - r.quantity) * s.sales_price else s.quantity * s.sales_price end as kept
    from shop_sales s left join shop_returns r on r.product_id = s.product_id and r.ticket_id = s.ticket_id join reasons x on x.reason_id = r.reason_id
    where x.reason in ('reason 7', 'reason 28')
) y
group by shopper_id
order by total, shopper_id
limit 100
