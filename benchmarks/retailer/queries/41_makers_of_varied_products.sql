select distinct p.title
from products p
where p.maker_id between 300 and 360
  and (select count(*) from products q where q.maker = p.maker
       and ((q.category = 'Women' and q.color in ('teal', 'plum', 'ivory') and q.size in ('small', 'large'))
         or (q.category = 'Men' and q.color in ('slate', 'ruby', 'tan') and q.packing in ('box', 'pair', 'each')))) > 0
order by p.title
limit 100
