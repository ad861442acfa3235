with monthly as (
    select p.category, p.brand, h.name, d.year, d.month, sum(s.sales_price) as sales,
        avg(sum(s.sales_price)) over (partition by p.category, p.brand, h.name, d.year) as usual,
        rank() over (partition by p.category, p.brand, h.name order by d.year, d.month) as place
    from shop_sales s join days d on d.day_id = s.sold_day join products p on p.product_id = s.product_id join shops h on h.shop_id = s.shop_id
    where d.year = 2021 or (d.year = 2020 and d.month = 12) or (d.year = 2022 and d.month = 1)
    group by p.category, p.brand, h.name, d.year, d.month
)
select a.category, a.brand, a.name, a.year, a.month, a.usual, a.sales, b.sales as before, c.sales as after
from monthly a join monthly b on b.category = a.category and b.brand = a.brand and b.name = a.name and b.place = a.place - 1
    join monthly c on c.category = a.category and c.brand = a.brand and c.name = a.name and c.place = a.place + 1
where a.year = 2021 and a.usual > 0 and case when a.usual > 0 then abs(a.sales - a.usual) / a.usual end > 0.103
order by a.sales - a.usual, a.name, a.category, a.brand, a.month
limit 100
