with ss as (
    select s.shop_id, sum(s.sales_total) as sales, sum(s.profit) as profit from shop_sales s join days d on d.day_id = s.sold_day
    where d.day between date '2022-08-03' and date '2022-09-02' and s.shop_id is not null group by s.shop_id
), sr as (
    select r.shop_id, sum(r.amount) as back, sum(r.loss) as lost from shop_returns r join days d on d.day_id = r.returned_day
    where d.day between date '2022-08-03' and date '2022-09-02' and r.shop_id is not null group by r.shop_id
), ms as (
    select s.centre_id, sum(s.sales_total) as sales, sum(s.profit) as profit from mail_sales s join days d on d.day_id = s.sold_day
    where d.day between date '2022-08-03' and date '2022-09-02' group by s.centre_id
), mr as (
    select sum(r.amount) as back, sum(r.loss) as lost from mail_returns r join days d on d.day_id = r.returned_day
    where d.day between date '2022-08-03' and date '2022-09-02'
)
select channel, id, sum(sales) as sales, sum(back) as back, sum(profit) as profit
from (
    select 'shop' as channel, ss.shop_id as id, sales, coalesce(back, 0) as back, profit - coalesce(lost, 0) as profit from ss left join sr on sr.shop_id = ss.shop_id
    union all
    select 'mail' as channel, centre_id as id, sales, back, profit - lost as profit from ms cross join mr
) x
group by rollup (channel, id)
order by channel, id, sales
limit 100
