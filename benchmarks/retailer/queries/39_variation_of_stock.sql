with varied as (
    select depot_id, product_id, month, deviation, average, case when average = 0 then null else deviation / average end as variation
    from (
        select t.depot_id, t.product_id, d.month, stddev_samp(t.on_hand) as deviation, avg(t.on_hand) as average
        from stock t join products p on p.product_id = t.product_id join days d on d.day_id = t.day_id
        where d.year = 2021
        group by t.depot_id, t.product_id, d.month
    ) x
    where case when average = 0 then 0 else deviation / average end > 1.1
)
select a.depot_id, a.product_id, a.month, a.average, a.variation, b.month as next_month, b.average as next_average, b.variation as next_variation
from varied a join varied b on b.product_id = a.product_id and b.depot_id = a.depot_id
where a.month = 3 and b.month = 4
order by a.depot_id, a.product_id, a.month, a.average, a.variation
