with totals as (
    select c.code, c.first_name, c.last_name, d.year, sum((s.list_total - s.cost_total - s.discount + s.sales_total) / 2) as total, 's' as channel
    from shoppers c join shop_sales s on s.shopper_id = c.shopper_id join days d on d.day_id = s.sold_day
    where d.year in (2021, 2022)
    group by c.code, c.first_name, c.last_name, d.year
    union all
    select c.code, c.first_name, c.last_name, d.year, sum((s.list_total - s.cost_total - s.discount + s.sales_total) / 2) as total, 'm' as channel
    from shoppers c join mail_sales s on s.shopper_id = c.shopper_id join days d on d.day_id = s.sold_day
    where d.year in (2021, 2022)
    group by c.code, c.first_name, c.last_name, d.year
    union all
    select c.code, c.first_name, c.last_name, d.year, sum((s.list_total - s.cost_total - s.discount + s.sales_total) / 2) as total, 'o' as channel
    from shoppers c join online_sales s on s.shopper_id = c.shopper_id join days d on d.day_id = s.sold_day
    where d.year in (2021, 2022)
    group by c.code, c.first_name, c.last_name, d.year
)
select s2.code, s2.first_name, s2.last_name
from totals s1 join totals s2 on s2.code = s1.code join totals m1 on m1.code = s1.code join totals m2 on m2.code = s1.code
    join totals o1 on o1.code = s1.code join totals o2 on o2.code = s1.code
where s1.channel = 's' and s2.channel = 's' and m1.channel = 'm' and m2.channel = 'm' and o1.channel = 'o' and o2.channel = 'o'
  and s1.year = 2021 and s2.year = 2022 and m1.year = 2021 and m2.year = 2022 and o1.year = 2021 and o2.year = 2022
  and s1.total > 0 and m1.total > 0 and o1.total > 0
  and m2.total / m1.total > s2.total / s1.total and m2.total / m1.total > o2.total / o1.total
order by s2.code, s2.first_name, s2.last_name
limit 100
