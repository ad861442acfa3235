select x.code, x.name, x.manager, sum(r.loss) as lost
from centres x join mail_returns r on r.centre_id = x.centre_id join days d on d.day_id = r.returned_day join shoppers c on c.shopper_id = r.returner_id
    join demographics g on g.demo_id = c.demo_id join households e on e.household_id = c.household_id
where d.year = 2021 and d.month between 9 and 12 and ((g.marital = 'M' and g.education = 'unknown') or (g.marital = 'W' and g.education = 'advanced')) and e.potential like '5%'
group by x.code, x.name, x.manager, g.marital, g.education
order by lost desc, x.code, x.name, x.manager
