with net as (
    select d.year, p.brand_id, p.class_id, p.category_id, s.quantity - coalesce(r.quantity, 0) as quantity, s.sales_total - coalesce(r.amount, 0) as sales
    from mail_sales s join products p on p.product_id = s.product_id join days d on d.day_id = s.sold_day
        left join mail_returns r on r.order_id = s.order_id and r.product_id = s.product_id
    where p.category = 'Books'
    union
    select d.year, p.brand_id, p.class_id, p.category_id, s.quantity - coalesce(r.quantity, 0) as quantity, s.sales_total - coalesce(r.amount, 0) as sales
    from shop_sales s join products p on p.product_id = s.product_id join days d on d.day_id = s.sold_day
        left join shop_returns r on r.ticket_id = s.ticket_id and r.product_id = s.product_id
    where p.category = 'Books'
), yearly as (
    select year, brand_id, class_id, category_id, sum(quantity) as quantity, sum(sales) as sales from net group by year, brand_id, class_id, category_id
)
select b.year as year_before, a.year, a.brand_id, a.class_id, a.category_id, b.quantity as quantity_before, a.quantity, a.quantity - b.quantity as more, a.sales - b.sales as sales_more
from yearly a join yearly b on b.brand_id = a.brand_id and b.class_id = a.class_id and b.category_id = a.category_id
where a.year = 2021 and b.year = 2020 and cast(a.quantity as double) / cast(b.quantity as double) < 1.05
order by more, sales_more, a.brand_id
limit 100
