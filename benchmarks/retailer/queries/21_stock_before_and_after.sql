select depot, code, before, after
from (
    select w.name as depot, p.code,
        sum(case when d.day < date '2021-03-11' then t.on_hand else 0 end) as before,
        sum(case when d.day >= date '2021-03-11' then t.on_hand else 0 end) as after
    from stock t join depots w on w.depot_id = t.depot_id join products p on p.product_id = t.product_id join days d on d.day_id = t.day_id
    where p.current_price between 5 and 15 and d.day between date '2021-02-09' and date '2021-04-10'
    group by w.name, p.code
) x
where (case when before > 0 then after * 1.0 / before else null end) between 0.6667 and 1.5
order by depot, code
limit 100
