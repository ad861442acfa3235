select p.code, p.category, p.class, sum(s.sales_total) as revenue,
    sum(s.sales_total) * 100 / sum(sum(s.sales_total)) over (partition by p.class) as share
from mail_sales s join products p on p.product_id = s.product_id join days d on d.day_id = s.sold_day
where p.category in ('Music', 'Men', 'Shoes') and d.day between date '2020-05-01' and date '2020-06-30'
group by p.code, p.category, p.class
order by p.category, p.class, p.code, share
limit 100
