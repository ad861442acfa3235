select sum(s.profit) as total, a.state, a.county, grouping(a.state) + grouping(a.county) as level,
    rank() over (partition by grouping(a.state) + grouping(a.county), case when grouping(a.county) = 0 then a.state end order by sum(s.profit) desc) as place
from shop_sales s join days d on d.day_id = s.sold_day join addresses a on a.address_id = s.address_id
where d.month_seq between 1440 and 1451
  and a.state in (
    select state from (
        select b.state, rank() over (order by sum(t.profit) desc) as place
        from shop_sales t join days e on e.day_id = t.sold_day join addresses b on b.address_id = t.address_id
        where e.month_seq between 1440 and 1451
        group by b.state
    ) x where place <= 5)
group by rollup (a.state, a.county)
order by level desc, case when level = 0 then a.state end, place, a.state, a.county
limit 100
