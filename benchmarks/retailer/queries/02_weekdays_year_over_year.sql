with sold as (
    select sold_day, sales_total from online_sales
    union all
    select sold_day, sales_total from mail_sales
), weeks as (
    select d.week_seq,
        sum(case when d.weekday_name = 'Sunday' then sales_total end) as sunday,
        sum(case when d.weekday_name = 'Monday' then sales_total end) as monday,
        sum(case when d.weekday_name = 'Wednesday' then sales_total end) as wednesday,
        sum(case when d.weekday_name = 'Friday' then sales_total end) as friday,
        sum(case when d.weekday_name = 'Saturday' then sales_total end) as saturday
    from sold join days d on d.day_id = sold_day
    group by d.week_seq
)
select a.week_seq, round(a.sunday / b.sunday, 2) as sunday, round(a.monday / b.monday, 2) as monday,
    round(a.wednesday / b.wednesday, 2) as wednesday, round(a.friday / b.friday, 2) as friday,
    round(a.saturday / b.saturday, 2) as saturday
from weeks a join weeks b on a.week_seq = b.week_seq - 53
where a.week_seq in (select week_seq from days where year = 2021)
order by a.week_seq
