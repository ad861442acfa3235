select substr(w.name, 1, 20) as depot, c.speed, x.name,
    sum(case when s.shipped_day - s.sold_day <= 30 then 1 else 0 end) as up_to_30,
    sum(case when s.shipped_day - s.sold_day > 30 and s.shipped_day - s.sold_day <= 60 then 1 else 0 end) as up_to_60,
    sum(case when s.shipped_day - s.sold_day > 60 then 1 else 0 end) as later
from mail_sales s join depots w on w.depot_id = s.depot_id join carriers c on c.carrier_id = s.carrier_id join centres x on x.centre_id = s.centre_id
    join days d on d.day_id = s.shipped_day
where d.month_seq between 1452 and 1463
group by substr(w.name, 1, 20), c.speed, x.name
order by depot, c.speed, x.name
limit 100
