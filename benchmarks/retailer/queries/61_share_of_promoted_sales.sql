select promoted, total, cast(promoted as decimal(15,4)) / cast(total as decimal(15,4)) * 100 as share
from (
    select sum(s.sales_total) as promoted
    from shop_sales s join shops h on h.shop_id = s.shop_id join campaigns k on k.campaign_id = s.campaign_id join days d on d.day_id = s.sold_day
        join shoppers c on c.shopper_id = s.shopper_id join addresses a on a.address_id = c.address_id join products p on p.product_id = s.product_id
    where a.gmt_offset = -7 and p.category = 'Jewelry' and (k.by_mail = 'Y' or k.by_email = 'Y' or k.by_television = 'Y') and d.year = 2021 and d.month = 11
) x cross join (
    select sum(s.sales_total) as total
    from shop_sales s join shops h on h.shop_id = s.shop_id join days d on d.day_id = s.sold_day
        join shoppers c on c.shopper_id = s.shopper_id join addresses a on a.address_id = c.address_id join products p on p.product_id = s.product_id
    where a.gmt_offset = -7 and p.category = 'Jewelry' and d.year = 2021 and d.month = 11
) y
order by promoted, total
