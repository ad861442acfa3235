select p.brand_id, p.brand, p.maker_id, p.maker, sum(s.sales_total) as sales
from days d join shop_sales s on s.sold_day = d.day_id join products p on p.product_id = s.product_id
    join shoppers c on c.shopper_id = s.shopper_id join addresses a on a.address_id = c.address_id join shops h on h.shop_id = s.shop_id
where p.manager_id between 8 and 15 and d.month = 11 and d.year = 2021 and substr(a.zip, 1, 1) <> substr(h.zip, 1, 1)
group by p.brand_id, p.brand, p.maker_id, p.maker
order by sales desc, p.brand_id, p.brand, p.maker_id, p.maker
limit 100
