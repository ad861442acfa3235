with shop as (
    select h.code as place, sum(x.sales) as sales, sum(x.gain) as gain, sum(x.back) as back, sum(x.lost) as lost
    from (
        select shop_id, sold_day as day_id, sales_total as sales, profit as gain, cast(0 as decimal(7,2)) as back, cast(0 as decimal(7,2)) as lost from shop_sales
        union all
        select shop_id, returned_day, cast(0 as decimal(7,2)), cast(0 as decimal(7,2)), amount, loss from shop_returns
    ) x join days d on d.day_id = x.day_id join shops h on h.shop_id = x.shop_id
    where d.day between date '2022-08-01' and date '2022-08-15'
    group by h.code
), mail as (
    select c.code as place, sum(x.sales) as sales, sum(x.gain) as gain, sum(x.back) as back, sum(x.lost) as lost
    from (
        select centre_id, sold_day as day_id, sales_total as sales, profit as gain, cast(0 as decimal(7,2)) as back, cast(0 as decimal(7,2)) as lost from mail_sales
        union all
        select centre_id, returned_day, cast(0 as decimal(7,2)), cast(0 as decimal(7,2)), amount, loss from mail_returns
    ) x join days d on d.day_id = x.day_id join centres c on c.centre_id = x.centre_id
    where d.day between date '2022-08-01' and date '2022-08-15'
    group by c.code
)
select channel, place, sum(sales) as sales, sum(back) as back, sum(gain - lost) as gain
from (
    select 'shop' as channel, place, sales, back, gain, lost from shop
    union all
    select 'mail' as channel, place, sales, back, gain, lost from mail
) x
group by rollup (channel, place)
order by channel, place
limit 100
