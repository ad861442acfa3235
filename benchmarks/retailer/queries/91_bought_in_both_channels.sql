with shop as (
    select s.shopper_id, s.product_id from shop_sales s join days d on d.day_id = s.sold_day where d.month_seq between 1452 and 1463 group by s.shopper_id, s.product_id
), mail as (
    select s.shopper_id, s.product_id from mail_sales s join days d on d.day_id = s.sold_day where d.month_seq between 1452 and 1463 group by s.shopper_id, s.product_id
)
select sum(case when s.shopper_id is not null and m.shopper_id is null then 1 else 0 end) as shop_alone,
    sum(case when s.shopper_id is null and m.shopper_id is not null then 1 else 0 end) as mail_alone,
    sum(case when s.shopper_id is not null and m.shopper_id is not null then 1 else 0 end) as in_both
from shop s full outer join mail m on m.shopper_id = s.shopper_id and m.product_id = s.product_id
