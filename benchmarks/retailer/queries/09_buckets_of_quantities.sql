select
    case when (select count(*) from shop_sales where quantity between 1 and 20) > 500000
        then (select avg(discount) from shop_sales where quantity between 1 and 20)
        else (select avg(paid) from shop_sales where quantity between 1 and 20) end as up_to_20,
    case when (select count(*) from shop_sales where quantity between 21 and 40) > 1000000
        then (select avg(discount) from shop_sales where quantity between 21 and 40)
        else (select avg(paid) from shop_sales where quantity between 21 and 40) end as up_to_40,
    case when (select count(*) from shop_sales where quantity between 41 and 60) > 400000
        then (select avg(discount) from shop_sales where quantity between 41 and 60)
        else (select avg(paid) from shop_sales where quantity between 41 and 60) end as up_to_60
from reasons
where reason_id = 1
