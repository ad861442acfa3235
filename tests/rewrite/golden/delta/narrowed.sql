-- name: filtered_sides
select e.k, sum(v.w) as w from event e join visit v on e.k = v.vk where e.v > 1 and v.w < 9 group by e.k
-- expected:
-- Project k_8 = k_1, w_9 = sum_7
--   Aggregate by [k_1] of [sum_7 = sum(w_6)]
--     Join inner on (k_1 = vk_5)
--       Project k_1
--         Filter (v_3 > 1.0)
--           Scan event [k, v]
--       Filter (w_6 < 9)
--         Scan visit [vk, w]

-- name: what_is_shown_stays
select e.v, v.w from event e join visit v on e.k = v.vk where e.v > 1
-- expected:
-- Project v_7 = v_3, w_8 = w_6
--   Join inner on (k_1 = vk_5)
--     Filter (v_3 > 1.0)
--       Scan event [k, v]
--     Scan visit [vk, w]

-- name: semi_join
select k from event where v > 1 and kind in (select id from kind where label <> 'one')
-- expected:
-- Project k_8 = k_1
--   Join semi on (kind_2 = id_7)
--     Project k_1, kind_2
--       Filter (v_3 > 1.0)
--         Scan event [k, kind, v]
--     Project id_7 = id_5
--       Filter (label_6 <> 'one')
--         Scan kind [id, label]

-- name: no_join
select v from event where v > 1
-- expected:
-- Project v_5 = v_3
--   Filter (v_3 > 1.0)
--     Scan event [v]

-- name: outer_join
select e.k from event e left join visit v on e.k = v.vk and v.w > 3 where e.x < 50
-- expected:
-- Project k_7 = k_1
--   Join left on (k_1 = vk_5)
--     Project k_1
--       Filter (x_4 < 50.0)
--         Scan event [k, x]
--     Project vk_5
--       Filter (w_6 > 3)
--         Scan visit [vk, w]
