with shop as (
    select a.county, d.quarter, d.year, sum(s.sales_total) as sales
    from shop_sales s join days d on d.day_id = s.sold_day join addresses a on a.address_id = s.address_id
    group by a.county, d.quarter, d.year
), online as (
    select a.county, d.quarter, d.year, sum(s.sales_total) as sales
    from online_sales s join days d on d.day_id = s.sold_day join addresses a on a.address_id = s.address_id
    group by a.county, d.quarter, d.year
)
select s1.county, s1.year, o2.sales / o1.sales as online_1, s2.sales / s1.sales as shop_1, o3.sales / o2.sales as online_2, s3.sales / s2.sales as shop_2
from shop s1 join shop s2 on s2.county = s1.county and s2.year = s1.year join shop s3 on s3.county = s1.county and s3.year = s1.year
    join online o1 on o1.county = s1.county and o1.year = s1.year join online o2 on o2.county = s1.county and o2.year = s1.year
    join online o3 on o3.county = s1.county and o3.year = s1.year
where s1.year = 2021 and s1.quarter = 1 and s2.quarter = 2 and s3.quarter = 3 and o1.quarter = 1 and o2.quarter = 2 and o3.quarter = 3
  and (case when o1.sales > 0 then o2.sales / o1.sales end) > (case when s1.sales > 0 then s2.sales / s1.sales end)
order by s1.county
