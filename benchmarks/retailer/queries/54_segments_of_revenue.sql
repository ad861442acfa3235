with chosen as (
    select distinct c.shopper_id, c.address_id
    from (
        select sold_day, shopper_id, product_id from mail_sales
        union all
        select sold_day, shopper_id, product_id from online_sales
    ) x join products p on p.product_id = x.product_id join days d on d.day_id = x.sold_day join shoppers c on c.shopper_id = x.shopper_id
    where p.category = 'Women' and p.class in ('classic', 'travel') and d.month = 12 and d.year = 2021
), revenue as (
    select k.shopper_id, sum(s.sales_total) as total
    from chosen k join shop_sales s on s.shopper_id = k.shopper_id join addresses a on a.address_id = k.address_id
        join shops h on h.gmt_offset = a.gmt_offset join days d on d.day_id = s.sold_day
    where d.month_seq between (select distinct month_seq + 1 from days where year = 2021 and month = 12)
        and (select distinct month_seq + 3 from days where year = 2021 and month = 12)
    group by k.shopper_id
)
select segment, count(*) as shoppers, segment * 50 as base
from (select cast(floor(total / 5000) as int) as segment from revenue) x
group by segment
order by segment, shoppers
limit 100
