-- name: filter_and_projection
select k as a, v from event where kind = 1
-- expected:
-- Project a_5 = k_1, v_6 = v_3
--   Filter ((kind_2 = 1) and (ticket(k_1) < 536870912))
--     Scan event [k, kind, v]

-- name: equality_join_to_both_sides
select e.k, e.v, w.w from event e join visit w on e.k = w.vk
-- expected:
-- Project k_7 = k_1, v_8 = v_3, w_9 = w_6
--   Join inner on (k_1 = vk_5)
--     Filter (ticket(k_1) < 536870912)
--       Scan event [k, v]
--     Filter (ticket(vk_5) < 536870912)
--       Scan visit [vk, w]

-- name: grouping_over_a_join
select e.k, count(*) as n from event e join visit w on e.k = w.vk group by e.k
-- expected:
-- Project k_8 = k_1, n_9 = count_7
--   Aggregate by [k_1] of [count_7 = count(*)]
--     Join inner on (k_1 = vk_5)
--       Filter (ticket(k_1) < 536870912)
--         Scan event [k]
--       Filter (ticket(vk_5) < 536870912)
--         Scan visit [vk]

-- name: three_tables_by_what_is_equal
select e.k, sum(o.z) as s from event e join visit w on e.k = w.vk join other o on o.ok = w.vk group by e.k
-- expected:
-- Project k_10 = k_1, s_11 = sum_9
--   Aggregate by [k_1] of [sum_9 = sum(z_8)]
--     Join inner on (ok_7 = vk_5)
--       Join inner on (k_1 = vk_5)
--         Filter (ticket(k_1) < 536870912)
--           Scan event [k]
--         Filter (ticket(vk_5) < 536870912)
--           Scan visit [vk]
--       Filter (ticket(ok_7) < 536870912)
--         Scan other [ok, z]

-- name: columns_of_one_side_only
select e.k, i.label from event e join kind i on e.kind = i.id
-- expected:
-- Project k_7 = k_1, label_8 = label_6
--   Join inner on (kind_2 = id_5)
--     Filter (ticket(k_1) < 536870912)
--       Scan event [k, kind]
--     Scan kind [id, label]

-- name: left_join_thins_the_right_side
select e.k, e.v, w.w from event e left join visit w on e.k = w.vk
-- expected:
-- Project k_7 = k_1, v_8 = v_3, w_9 = w_6
--   Join left on (k_1 = vk_5)
--     Filter (ticket(k_1) < 536870912)
--       Scan event [k, v]
--     Filter (ticket(vk_5) < 536870912)
--       Scan visit [vk, w]

-- name: full_join_of_merged_keys
select coalesce(e.k, w.vk) as k, e.v, w.w from event e full join visit w on e.k = w.vk
-- expected:
-- Project k_7 = coalesce(k_1, vk_5), v_8 = v_3, w_9 = w_6
--   Join full on (k_1 = vk_5)
--     Filter (ticket(k_1) < 536870912)
--       Scan event [k, v]
--     Filter (ticket(vk_5) < 536870912)
--       Scan visit [vk, w]

-- name: exists_is_thinned
select e.k, e.v from event e where exists (select 1 from visit w where w.vk = e.k)
-- expected:
-- Project k_8 = k_1, v_9 = v_3
--   Join semi on (vk_5 = k_1)
--     Filter (ticket(k_1) < 536870912)
--       Scan event [k, v]
--     Project vk_5
--       Filter (ticket(vk_5) < 536870912)
--         Scan visit [vk]

-- name: set_operations
select k, x from event except select ok, cast(z as double) from other
-- expected:
-- Except
--   Project k_5 = k_1, x_6 = x_4
--     Filter (ticket(k_1) < 536870912)
--       Scan event [k, x]
--   Project ok_9 = ok_7, value_10 = cast(z_8 as double)
--     Filter (ticket(ok_7) < 536870912)
--       Scan other [ok, z]

-- name: window_by_the_column
select k, v, row_number() over (partition by k order by v) as place from event
-- expected:
-- Project k_6 = k_1, v_7 = v_3, place_8 = window_5
--   Window window_5 = row_number() over (by k_1 order v_3 asc)
--     Filter (ticket(k_1) < 536870912)
--       Scan event [k, v]

-- name: nested_count_stops_it
select c, count(*) as n from (select k, count(*) as c from event group by k) group by c
-- expected:
-- Project c_9 = c_7, n_10 = count_8
--   Aggregate by [c_7] of [count_8 = count(*)]
--     Project c_7 = count_5
--       Filter (ticket(count_5) < 536870912)
--         Aggregate by [k_1] of [count_5 = count(*)]
--           Scan event [k]

-- name: function_of_a_column
select substring(label, 1, 2) as code, count(*) as n from kind group by substring(label, 1, 2)
-- expected:
-- Project code_5 = key_3, n_6 = count_4
--   Aggregate by [key_3 = substring(label_2, 1, 2)] of [count_4 = count(*)]
--     Filter (ticket(substring(label_2, 1, 2)) < 536870912)
--       Scan kind [label]
