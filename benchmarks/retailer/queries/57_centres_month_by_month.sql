with monthly as (
    select p.category, p.brand, c.name, d.year, d.month, sum(s.sales_price) as sales,
        avg(sum(s.sales_price)) over (partition by p.category, p.brand, c.name, d.year) as usual,
        lag(sum(s.sales_price)) over (partition by p.category, p.brand, c.name order by d.year, d.month) as before,
        lead(sum(s.sales_price)) over (partition by p.category, p.brand, c.name order by d.year, d.month) as after
    from mail_sales s join days d on d.day_id = s.sold_day join products p on p.product_id = s.product_id join centres c on c.centre_id = s.centre_id
    where d.year = 2022 or (d.year = 2021 and d.month = 12) or (d.year = 2023 and d.month = 1)
    group by p.category, p.brand, c.name, d.year, d.month
)
select category, brand, name, year, month, usual, sales, before, after
from monthly
where year = 2022 and usual > 0 and case when usual > 0 then abs(sales - usual) / usual end > 0.103
order by sales - usual, name, category, brand, month
limit 100
