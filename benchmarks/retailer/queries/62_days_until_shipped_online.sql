select substr(w.name, 1, 20) as depot, c.speed, t.name,
    sum(case when s.shipped_day - s.sold_day <= 30 then 1 else 0 end) as up_to_30,
    sum(case when s.shipped_day - s.sold_day > 30 and s.shipped_day - s.sold_day <= 60 then 1 else 0 end) as up_to_60,
    sum(case when s.shipped_day - s.sold_day > 60 and s.shipped_day - s.sold_day <= 90 then 1 else 0 end) as up_to_90,
    sum(case when s.shipped_day - s.sold_day > 90 then 1 else 0 end) as later
from online_sales s join depots w on w.depot_id = s.depot_id join carriers c on c.carrier_id = s.carrier_id join sites t on t.site_id = s.site_id
    join days d on d.day_id = s.shipped_day
where d.month_seq between 1440 and 1451
group by substr(w.name, 1, 20), c.speed, t.name
order by depot, c.speed, t.name
limit 100
