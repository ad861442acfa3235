with shop as (
    select p.code, sum(r.quantity) as quantity from shop_returns r join products p on p.product_id = r.product_id join days d on d.day_id = r.returned_day
    where d.week_seq in (select week_seq from days where day in (date '2021-06-30', date '2021-09-27', date '2021-11-17')) group by p.code
), mail as (
    select p.code, sum(r.quantity) as quantity from mail_returns r join products p on p.product_id = r.product_id join days d on d.day_id = r.returned_day
    where d.week_seq in (select week_seq from days where day in (date '2021-06-30', date '2021-09-27', date '2021-11-17')) group by p.code
), online as (
    select p.code, sum(r.quantity) as quantity from online_returns r join products p on p.product_id = r.product_id join days d on d.day_id = r.returned_day
    where d.week_seq in (select week_seq from days where day in (date '2021-06-30', date '2021-09-27', date '2021-11-17')) group by p.code
)
select s.code, s.quantity as shop, s.quantity * 1.0 / (s.quantity + m.quantity + o.quantity) / 3.0 * 100 as shop_share, m.quantity as mail, o.quantity as online,
    (s.quantity + m.quantity + o.quantity) / 3.0 as average
from shop s join mail m on m.code = s.code join online o on o.code = s.code
order by s.code, shop
limit 100
