select w.name, w.floor_space, x.year, sum(x.january) as january, sum(x.april) as april, sum(x.july) as july, sum(x.october) as october, sum(x.december) as december,
    sum(x.december / w.floor_space) as december_by_space
from (
    select s.depot_id, d.year,
        sum(case when d.month = 1 then s.sales_total * s.quantity else 0 end) as january, sum(case when d.month = 4 then s.sales_total * s.quantity else 0 end) as april,
        sum(case when d.month = 7 then s.sales_total * s.quantity else 0 end) as july, sum(case when d.month = 10 then s.sales_total * s.quantity else 0 end) as october,
        sum(case when d.month = 12 then s.sales_total * s.quantity else 0 end) as december
    from online_sales s join days d on d.day_id = s.sold_day join clock k on k.time_id = s.sold_time join carriers c on c.carrier_id = s.carrier_id
    where d.year = 2021 and k.hour between 8 and 16 and c.way in ('air', 'rail')
    group by s.depot_id, d.year
    union all
    select s.depot_id, d.year,
        sum(case when d.month = 1 then s.sales_total * s.quantity else 0 end) as january, sum(case when d.month = 4 then s.sales_total * s.quantity else 0 end) as april,
        sum(case when d.month = 7 then s.sales_total * s.quantity else 0 end) as july, sum(case when d.month = 10 then s.sales_total * s.quantity else 0 end) as october,
        sum(case when d.month = 12 then s.sales_total * s.quantity else 0 end) as december
    from mail_sales s join days d on d.day_id = s.sold_day join clock k on k.time_id = s.sold_time join carriers c on c.carrier_id = s.carrier_id
    where d.year = 2021 and k.hour between 8 and 16 and c.way in ('air', 'rail')
    group by s.depot_id, d.year
) x join depots w on w.depot_id = x.depot_id
group by w.name, w.floor_space, x.year
order by w.name
limit 100
