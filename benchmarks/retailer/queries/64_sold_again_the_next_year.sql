with dear as (
    select m.product_id, sum(m.list_total) as sales, sum(r.cash + r.credit) as refunds
    from mail_sales m join mail_returns r on r.order_id = m.order_id and r.product_id = m.product_id
    group by m.product_id
    having sum(m.list_total) > 2 * sum(r.cash + r.credit)
), sold as (
    select p.title, p.product_id, h.name as shop, h.zip, d.year, count(*) as lines, sum(s.unit_cost) as cost, sum(s.list_price) as listed, sum(s.coupon) as coupon
    from shop_sales s join shop_returns r on r.product_id = s.product_id and r.ticket_id = s.ticket_id join dear e on e.product_id = s.product_id
        join days d on d.day_id = s.sold_day join shops h on h.shop_id = s.shop_id join shoppers c on c.shopper_id = s.shopper_id
        join demographics g on g.demo_id = s.demo_id join demographics b on b.demo_id = c.demo_id join households f on f.household_id = s.household_id
        join income_bands i on i.band_id = f.band_id join addresses a on a.address_id = s.address_id join products p on p.product_id = s.product_id
    where g.marital <> b.marital and p.color in ('plum', 'teal', 'olive', 'amber', 'ruby', 'tan', 'coral', 'khaki') and p.current_price between 5 and 60
    group by p.title, p.product_id, h.name, h.zip, d.year
)
select x.title, x.shop, x.zip, x.lines, x.cost, x.listed, x.coupon, y.lines as lines_next, y.cost as cost_next, y.listed as listed_next, y.coupon as coupon_next
from sold x join sold y on y.product_id = x.product_id and y.shop = x.shop and y.zip = x.zip
where x.year = 2021 and y.year = 2022 and y.lines <= x.lines
order by x.title, x.shop, x.zip, x.lines, x.cost, x.listed, x.coupon, cost_next, listed_next, coupon_next
limit 100
