-- name: key_of_a_join
select e.k, e.kind, w.w from event e join visit w on e.k = w.vk
-- expected:
-- k_7 reaches event, visit

-- name: one_table
select k, kind, count(*) as n from event group by k, kind
-- expected:
-- k_6, kind_7 reaches event
