select *
from (select avg(list_price) as average_1, count(list_price) as lines_1, count(distinct list_price) as prices_1 from shop_sales
      where quantity between 0 and 5 and (list_price between 8 and 18 or coupon between 460 and 1460 or unit_cost between 57 and 77)) b1
    cross join (select avg(list_price) as average_2, count(list_price) as lines_2, count(distinct list_price) as prices_2 from shop_sales
      where quantity between 6 and 10 and (list_price between 90 and 100 or coupon between 2320 and 3320 or unit_cost between 31 and 51)) b2
    cross join (select avg(list_price) as average_3, count(list_price) as lines_3, count(distinct list_price) as prices_3 from shop_sales
      where quantity between 11 and 15 and (list_price between 142 and 152 or coupon between 1200 and 2200 or unit_cost between 79 and 99)) b3
    cross join (select avg(list_price) as average_4, count(list_price) as lines_4, count(distinct list_price) as prices_4 from shop_sales
      where quantity between 16 and 20 and (list_price between 135 and 145 or coupon between 600 and 1600 or unit_cost between 38 and 58)) b4
limit 100
