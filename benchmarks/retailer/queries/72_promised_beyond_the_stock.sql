select p.title, w.name, d.week_seq, sum(case when k.campaign_id is null then 1 else 0 end) as plain, sum(case when k.campaign_id is not null then 1 else 0 end) as promoted, count(*) as lines
from mail_sales s join stock t on t.product_id = s.product_id join depots w on w.depot_id = t.depot_id join products p on p.product_id = s.product_id
    join demographics g on g.demo_id = s.demo_id join households e on e.household_id = s.household_id
    join days d on d.day_id = s.sold_day join days f on f.day_id = t.day_id join days z on z.day_id = s.shipped_day
    left join campaigns k on k.campaign_id = s.campaign_id left join mail_returns r on r.product_id = s.product_id and r.order_id = s.order_id
where d.week_seq = f.week_seq and t.on_hand < s.quantity and z.day_id > d.day_id + 5 and e.potential = '>10000' and d.year = 2021 and g.marital = 'D'
group by p.title, w.name, d.week_seq
order by lines desc, p.title, w.name, d.week_seq
limit 100
