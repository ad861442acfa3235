with totals as (
    select c.code, c.preferred, d.year, sum(s.list_total - s.discount) as total, 's' as channel
    from shoppers c join shop_sales s on s.shopper_id = c.shopper_id join days d on d.day_id = s.sold_day
    where d.year in (2020, 2021)
    group by c.code, c.preferred, d.year
    union all
    select c.code, c.preferred, d.year, sum(s.list_total - s.discount) as total, 'o' as channel
    from shoppers c join online_sales s on s.shopper_id = c.shopper_id join days d on d.day_id = s.sold_day
    where d.year in (2020, 2021)
    group by c.code, c.preferred, d.year
)
select s2.code, s2.preferred
from totals s1 join totals s2 on s2.code = s1.code join totals o1 on o1.code = s1.code join totals o2 on o2.code = s1.code
where s1.channel = 's' and s2.channel = 's' and o1.channel = 'o' and o2.channel = 'o'
  and s1.year = 2020 and s2.year = 2021 and o1.year = 2020 and o2.year = 2021 and s1.total > 0 and o1.total > 0
  and o2.total / o1.total > s2.total / s1.total
order by s2.code, s2.preferred
limit 100
