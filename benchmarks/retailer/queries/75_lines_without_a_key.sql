select channel, missing, year, quarter, category, count(*) as lines, sum(price) as sales
from (
    select 'shop' as channel, 'shop_id' as missing, d.year, d.quarter, p.category, s.sales_total as price
    from shop_sales s join products p on p.product_id = s.product_id join days d on d.day_id = s.sold_day where s.shop_id is null
    union all
    select 'online' as channel, 'receiver_id' as missing, d.year, d.quarter, p.category, s.sales_total as price
    from online_sales s join products p on p.product_id = s.product_id join days d on d.day_id = s.sold_day where s.receiver_id is null
    union all
    select 'mail' as channel, 'receiver_address_id' as missing, d.year, d.quarter, p.category, s.sales_total as price
    from mail_sales s join products p on p.product_id = s.product_id join days d on d.day_id = s.sold_day where s.receiver_address_id is null
) x
group by channel, missing, year, quarter, category
order by channel, missing, year, quarter, category
limit 100
