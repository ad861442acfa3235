select g.gender, g.marital, grouping(g.gender) as all_genders, grouping(g.marital) as all_marriages, count(*) as lines, avg(s.paid) as paid, count(distinct s.shopper_id) as shoppers
from online_sales s join demographics g on g.demo_id = s.demo_id join days d on d.day_id = s.sold_day
where d.year = 2022
group by cube (g.gender, g.marital)
order by all_genders, all_marriages, g.gender, g.marital
