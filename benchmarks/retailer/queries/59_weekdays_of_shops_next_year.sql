with weeks as (
    select d.week_seq, s.shop_id,
        sum(case when d.weekday_name = 'Sunday' then s.sales_price end) as sunday, sum(case when d.weekday_name = 'Tuesday' then s.sales_price end) as tuesday,
        sum(case when d.weekday_name = 'Thursday' then s.sales_price end) as thursday, sum(case when d.weekday_name = 'Saturday' then s.sales_price end) as saturday
    from shop_sales s join days d on d.day_id = s.sold_day
    group by d.week_seq, s.shop_id
)
select h.name, h.code, a.week_seq, a.sunday / b.sunday as sunday, a.tuesday / b.tuesday as tuesday, a.thursday / b.thursday as thursday, a.saturday / b.saturday as saturday
from weeks a join weeks b on b.shop_id = a.shop_id and b.week_seq = a.week_seq + 52 join shops h on h.shop_id = a.shop_id
where a.week_seq in (select week_seq from days where month_seq between 1440 and 1451)
order by h.name, h.code, a.week_seq
limit 100
