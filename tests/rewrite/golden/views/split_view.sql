-- name: rows_with_their_key
select label from kind where id > 0
-- expected:
-- columns: label, _id_1
-- key: _id_1
-- stored:
--   Project label_3 = label_2, id_1_view1 = id_1
--     Filter (id_1 > 0)
--       Scan kind [id, label]
-- read:
--   Project label_3
--     Input stored

-- name: rows_without_a_key
select v, x from event where v > 3
-- expected:
-- columns: v, x
-- key: 
-- stored:
--   Project v_5 = v_3, x_6 = x_4
--     Filter (v_3 > 3.0)
--       Scan event [v, x]
-- as it is

-- name: ordered
select k, v from event order by v desc, k
-- expected:
-- columns: k, v
-- key: 
-- stored:
--   Project k_5 = k_1, v_6 = v_3
--     Scan event [k, v]
-- read:
--   Sort v_6 desc, k_5 asc
--     Input stored

-- name: first_rows
select z from other order by ok desc limit 3
-- expected:
-- columns: z
-- key: 
-- stored:
--   Project z_3
--     Limit 3
--       Sort order_4 desc
--         Project z_3 = z_2, order_4 = ok_1
--           Scan other [ok, z]
-- as it is

-- name: limit_without_order
select w from visit limit 2
-- expected:
-- columns: w
-- key: 
-- stored:
--   Limit 2
--     Project w_3 = w_2
--       Scan visit [w]
-- as it is

-- name: sums
select kind, count(*) c, sum(v) s, avg(v) a, min(k) lo from event group by kind
-- expected:
-- columns: kind, c, s, lo, _count
-- key: kind
-- stored:
--   Aggregate by [kind_2] of [count_5 = count(*), sum_6 = sum(v_3), min_8 = min(k_1), part_view1 = count(v_3)]
--     Scan event [k, kind, v]
-- read:
--   Project kind_9 = kind_2, c_10 = count_5, s_11 = sum_6, a_12 = avg_7, lo_13 = min_8
--     Project kind_2, count_5, sum_6, avg_7 = average_of(sum_6, part_view1), min_8
--       Input stored

-- name: having_order_limit
select kind, sum(v) s from event group by kind having count(*) > 3 order by s desc limit 2
-- expected:
-- columns: kind, s, _count, _count_2
-- key: kind
-- stored:
--   Aggregate by [kind_2] of [sum_5 = sum(v_3), count_6 = count(*), part_view1 = count(v_3)]
--     Scan event [kind, v]
-- read:
--   Limit 2
--     Sort s_8 desc, kind_7 asc, s_8 asc
--       Project kind_7 = kind_2, s_8 = sum_5
--         Filter (count_6 > 3)
--           Project kind_2, sum_5, count_6
--             Input stored

-- name: first_groups_without_order
select kind, count(*) c from event group by kind limit 2
-- expected:
-- columns: kind, c
-- key: kind
-- stored:
--   Aggregate by [kind_2] of [count_5 = count(*)]
--     Scan event [kind]
-- read:
--   Limit 2
--     Sort kind_6 asc, c_7 asc
--       Project kind_6 = kind_2, c_7 = count_5
--         Project kind_2, count_5
--           Input stored

-- name: doubles
select kind, sum(x) s, count(distinct k) d from event group by kind
-- expected:
-- columns: kind, s, d
-- key: kind
-- stored:
--   Aggregate by [kind_2] of [sum_5 = sum(x_4), count_6 = count(distinct k_1)]
--     Scan event [k, kind, x]
-- read:
--   Project kind_7 = kind_2, s_8 = sum_5, d_9 = count_6
--     Input stored

-- name: without_keys
select count(*) c, sum(v) s from event
-- expected:
-- columns: c, s, _count
-- key: 
-- stored:
--   Aggregate by [] of [count_5 = count(*), sum_6 = sum(v_3), part_view1 = count(v_3)]
--     Scan event [v]
-- read:
--   Project c_7 = count_5, s_8 = sum_6
--     Project count_5, sum_6
--       Input stored

-- name: distinct_rows
select distinct kind, k from event
-- expected:
-- columns: kind, k, _count
-- key: kind, k
-- stored:
--   Aggregate by [kind_5, k_6] of [part_view1 = count(*)]
--     Project kind_5 = kind_2, k_6 = k_1
--       Scan event [k, kind]
-- read:
--   Project kind_5, k_6
--     Input stored

-- name: rollup
select kind, k, sum(v) s from event where k < 6 group by rollup(kind, k)
-- expected:
-- columns: kind, k, s, _grouping_id
-- key: kind, k, _grouping_id
-- stored:
--   Aggregate by [kind_6 = kind_2, k_7 = k_1] of [sum_8 = sum(v_3)] grouping sets [(0, 1), (0,), ()]
--     Filter (k_1 < 6)
--       Scan event [k, kind, v]
-- read:
--   Project kind_9 = kind_6, k_10 = k_7, s_11 = sum_8
--     Input stored

-- name: shown_twice
select kind, kind as again, count(*) c, count(*) as d from event group by kind
-- expected:
-- columns: kind, c
-- key: kind
-- stored:
--   Aggregate by [kind_2] of [count_5 = count(*)]
--     Scan event [kind]
-- read:
--   Project kind_6 = kind_2, again_7 = kind_2, c_8 = count_5, d_9 = count_5
--     Project kind_2, count_5
--       Input stored

-- name: joined_groups
select label, sum(v) / count(*) as mean from event join kind on event.kind = kind.id group by label
-- expected:
-- columns: label, _sum, _count, _count_2
-- key: label
-- stored:
--   Aggregate by [label_6] of [sum_7 = sum(v_3), count_8 = count(*), part_view1 = count(v_3)]
--     Join inner on (kind_2 = id_5)
--       Scan event [kind, v]
--       Scan kind [id, label]
-- read:
--   Project label_9 = label_6, mean_10 = (sum_7 / cast(count_8 as decimal(20,0)))
--     Project label_6, sum_7, count_8
--       Input stored

-- name: groups_of_groups
select n, count(*) as c from (select k, count(*) as n from event group by k) t group by n
-- expected:
-- columns: n, c
-- key: n
-- stored:
--   Aggregate by [n_7] of [count_8 = count(*)]
--     Project n_7 = count_5
--       Aggregate by [k_1] of [count_5 = count(*)]
--         Scan event [k]
-- read:
--   Project n_9 = n_7, c_10 = count_8
--     Project n_7, count_8
--       Input stored

-- name: window
select k, v, rank() over (partition by kind order by v) as r from event order by r, k
-- expected:
-- columns: k, v, r
-- key: 
-- stored:
--   Project k_6 = k_1, v_7 = v_3, r_8 = window_5
--     Window window_5 = rank() over (by kind_2 order v_3 asc)
--       Scan event [k, kind, v]
-- read:
--   Sort r_8 asc, k_6 asc
--     Input stored

-- name: union_of_rows
select k from event union all select vk from visit order by 1
-- expected:
-- columns: k
-- key: 
-- stored:
--   Project k_9
--     Union all
--       Project k_5 = k_1
--         Scan event [k]
--       Project vk_8 = vk_6
--         Scan visit [vk]
-- read:
--   Sort k_9 asc
--     Input stored

-- name: rows_of_a_union
select id, label from kind union all select id, label from kind where id > 1 union all select id, 'x' from kind
-- expected:
-- columns: id, label, _side_view1
-- key: id, _side_view1
-- stored:
--   Project id_15, label_16, side_view1_view6 = side_view1
--     Union all
--       Union all
--         Project id_3, label_4, side_view3 = 0
--           Project id_3 = id_1, label_4 = label_2
--             Scan kind [id, label]
--         Project id_7, label_8, side_view4 = 1
--           Project id_7 = id_5, label_8 = label_6
--             Filter (id_5 > 1)
--               Scan kind [id, label]
--       Project id_13, value_14, side_view5 = 2
--         Project id_13 = id_11, value_14 = 'x'
--           Scan kind [id]
-- read:
--   Project id_15, label_16
--     Input stored
