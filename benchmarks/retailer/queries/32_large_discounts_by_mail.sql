select sum(s.discount) as discount
from mail_sales s join products p on p.product_id = s.product_id join days d on d.day_id = s.sold_day
where p.maker_id between 200 and 300 and d.day between date '2022-01-27' and date '2022-04-27'
  and s.discount > (
    select 1.3 * avg(t.discount) from mail_sales t join days e on e.day_id = t.sold_day
    where t.product_id = p.product_id and e.day between date '2022-01-27' and date '2022-04-27')
