with shop as (
    select p.code, sum(s.sales_total) as sales from shop_sales s join products p on p.product_id = s.product_id join days d on d.day_id = s.sold_day
    where d.week_seq in (select week_seq from days where day = date '2022-11-03')
    group by p.code
), mail as (
    select p.code, sum(s.sales_total) as sales from mail_sales s join products p on p.product_id = s.product_id join days d on d.day_id = s.sold_day
    where d.week_seq in (select week_seq from days where day = date '2022-11-03')
    group by p.code
)
select s.code, s.sales as shop, s.sales / ((s.sales + m.sales) / 2) * 100 as shop_share, m.sales as mail, (s.sales + m.sales) / 2 as average
from shop s join mail m on m.code = s.code
where s.sales between 0.7 * m.sales and 1.4 * m.sales and m.sales between 0.7 * s.sales and 1.4 * s.sales
order by s.code, shop
limit 100
