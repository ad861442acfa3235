-- name: grouping_by_the_clustering_column
select k, sum(v) s from event group by k order by s desc, k limit 7
-- expected:
-- Limit 7
--   Sort s_7 desc, k_6 asc
--     Exchange gather
--       Limit 7
--         Sort s_7 desc, k_6 asc
--           Project k_6 = k_1, s_7 = sum_5
--             Aggregate by [k_1] of [sum_5 = sum(v_3)]
--               Scan event [k, v]    -- range

-- name: block_local_join
select count(*) c, sum(v * w) s from event join visit on k = vk where w > 3
-- expected:
-- Project c_9 = count_7, s_10 = sum_8
--   Project count_7 = coalesce(whole_dist2, 0), sum_8 = whole_dist4
--     Aggregate by [] of [whole_dist2 = sum(part_dist1), whole_dist4 = sum(part_dist3)]
--       Exchange gather
--         Aggregate by [] of [part_dist1 = count(*), part_dist3 = sum((v_3 * cast(w_6 as decimal(20,0))))]
--           Join inner on (k_1 = vk_5)
--             Scan event [k, v]    -- range
--             Filter (w_6 > 3)
--               Scan visit [vk, w]    -- range

-- name: block_local_left_join
select k, w from event left join visit on k = vk
-- expected:
-- Exchange gather
--   Project k_7 = k_1, w_8 = w_6
--     Join left on (k_1 = vk_5)
--       Scan event [k]    -- range
--       Scan visit [vk, w]    -- range

-- name: small_table_everywhere
select label, count(*) c from event join kind on event.kind = id group by label
-- expected:
-- Exchange gather
--   Project label_8 = label_6, c_9 = count_7
--     Project label_6, count_7 = whole_dist2
--       Aggregate by [label_6] of [whole_dist2 = sum(part_dist1)]
--         Exchange hash by label_6
--           Aggregate by [label_6] of [part_dist1 = count(*)]
--             Join inner on (kind_2 = id_5)
--               Scan event [kind]    -- blocks
--               Scan kind [id, label]

-- name: small_table_outer
select label, k from kind left join event on event.kind = id
-- expected:
-- Exchange gather
--   Project label_7 = label_2, k_8 = k_3
--     Join left on (kind_4 = id_1)
--       Exchange hash by id_1
--         Scan kind [id, label]
--       Exchange hash by kind_4
--         Scan event [k, kind]    -- range

-- name: broadcast_is_cheaper
select z, w from other join visit on ok = vk and w = 3
-- expected:
-- Exchange gather
--   Project z_5 = z_2, w_6 = w_4
--     Join inner on (ok_1 = vk_3)
--       Scan other [ok, z]    -- blocks
--       Exchange broadcast
--         Filter (w_4 = 3)
--           Scan visit [vk, w]    -- range

-- name: hash_is_cheaper
select z, v from event join other on k = ok
-- expected:
-- Exchange gather
--   Project z_7 = z_6, v_8 = v_3
--     Join inner on (k_1 = ok_5)
--       Exchange hash by k_1
--         Scan event [k, v]    -- range
--       Exchange hash by ok_5
--         Scan other [ok, z]    -- blocks

-- name: compared_not_equated
select count(*) c from event join other on k > ok
-- expected:
-- Project c_8 = count_7
--   Project count_7 = coalesce(whole_dist2, 0)
--     Aggregate by [] of [whole_dist2 = sum(part_dist1)]
--       Exchange gather
--         Aggregate by [] of [part_dist1 = count(*)]
--           Join inner on (k_1 > ok_5)
--             Scan event [k]    -- range
--             Exchange broadcast
--               Scan other [ok]    -- blocks

-- name: full_join_by_hash
select k, ok from event full join other on k = ok
-- expected:
-- Exchange gather
--   Project k_7 = k_1, ok_8 = ok_5
--     Join full on (k_1 = ok_5)
--       Exchange hash by k_1
--         Scan event [k]    -- range
--       Exchange hash by ok_5
--         Scan other [ok]    -- blocks

-- name: full_join_at_one_site
select k, ok from event full join other on k > ok + 30
-- expected:
-- Project k_7 = k_1, ok_8 = ok_5
--   Join full on (k_1 > (ok_5 + 30))
--     Exchange gather
--       Scan event [k]    -- range
--     Exchange gather
--       Scan other [ok]    -- blocks

-- name: semi
select k from event where k in (select ok from other where z = 3)
-- expected:
-- Exchange gather
--   Project k_8 = k_1
--     Join semi on (k_1 = ok_7)
--       Scan event [k]    -- range
--       Exchange broadcast
--         Project ok_7 = ok_5
--           Filter (z_6 = 3)
--             Scan other [ok, z]    -- blocks

-- name: anti
select ok from other where not exists (select 1 from event where k = ok)
-- expected:
-- Exchange gather
--   Project ok_8 = ok_1
--     Join anti on (k_3 = ok_1)
--       Exchange hash by ok_1
--         Scan other [ok]    -- blocks
--       Exchange hash by k_3
--         Project k_3
--           Scan event [k]    -- range

-- name: partial_results_by_hash
select z, count(*) c, avg(ok) a, min(ok) lo from other group by z
-- expected:
-- Exchange gather
--   Project z_6 = z_2, c_7 = count_3, a_8 = avg_4, lo_9 = min_5
--     Project z_2, count_3 = whole_dist2, avg_4 = average_of(whole_dist4, whole_dist6), min_5 = whole_dist8
--       Aggregate by [z_2] of [whole_dist2 = sum(part_dist1), whole_dist4 = sum(part_dist3), whole_dist6 = sum(part_dist5), whole_dist8 = min(part_dist7)]
--         Exchange hash by z_2
--           Aggregate by [z_2] of [part_dist1 = count(*), part_dist3 = sum(ok_1), part_dist5 = count(ok_1), part_dist7 = min(ok_1)]
--             Scan other [ok, z]    -- blocks

-- name: partial_results_without_keys
select count(*) c, sum(v) s, avg(x) a from event where k < 0
-- expected:
-- Project c_8 = count_5, s_9 = sum_6, a_10 = avg_7
--   Project count_5 = coalesce(whole_dist2, 0), sum_6 = whole_dist4, avg_7 = average_of(whole_dist6, whole_dist8)
--     Aggregate by [] of [whole_dist2 = sum(part_dist1), whole_dist4 = sum(part_dist3), whole_dist6 = sum(part_dist5), whole_dist8 = sum(part_dist7)]
--       Exchange gather
--         Aggregate by [] of [part_dist1 = count(*), part_dist3 = sum(v_3), part_dist5 = sum(x_4), part_dist7 = count(x_4)]
--           Filter (k_1 < 0)
--             Scan event [k, v, x]    -- range

-- name: rows_move_where_nothing_merges
select z % 3 as m, count(distinct ok) d, percentile(ok, 0.5) p from other group by z % 3
-- expected:
-- Exchange gather
--   Project m_6 = key_3, d_7 = count_4, p_8 = percentile_5
--     Aggregate by [key_3 = key_dist1] of [count_4 = count(distinct ok_1), percentile_5 = percentile(cast(ok_1 as double), 0.5)]
--       Exchange hash by key_dist1
--         Project ok_1, key_dist1 = (z_2 % 3)
--           Scan other [ok, z]    -- blocks

-- name: nothing_merges_without_keys
select count(distinct kind) d from event
-- expected:
-- Project d_6 = count_5
--   Aggregate by [] of [count_5 = count(distinct kind_2)]
--     Exchange gather
--       Scan event [kind]    -- blocks

-- name: grouping_sets
select kind, z, count(*) c, grouping_id() g from event join other on k = ok group by cube(kind, z)
-- expected:
-- Exchange gather
--   Project kind_11 = kind_8, z_12 = z_9, c_13 = count_10, g_14 = grouping_id_7
--     Project kind_8, z_9, count_10 = whole_dist2, grouping_id_7
--       Aggregate by [kind_8, z_9, grouping_id_7] of [whole_dist2 = sum(part_dist1)]
--         Exchange hash by kind_8, z_9, grouping_id_7
--           Aggregate by [kind_8 = kind_2, z_9 = z_6] of [part_dist1 = count(*)] grouping sets [(0, 1), (0,), (1,), ()]
--             Join inner on (k_1 = ok_5)
--               Exchange hash by k_1
--                 Scan event [k, kind]    -- range
--               Exchange hash by ok_5
--                 Scan other [ok, z]    -- blocks

-- name: window_where_partitions_are
select k, row_number() over (partition by k order by v, kind, x) r from event
-- expected:
-- Exchange gather
--   Project k_6 = k_1, r_7 = window_5
--     Window window_5 = row_number() over (by k_1 order v_3 asc, kind_2 asc, x_4 asc)
--       Scan event [k, kind, v, x]    -- range

-- name: window_by_hash
select ok, rank() over (partition by z order by ok) r from other
-- expected:
-- Exchange gather
--   Project ok_4 = ok_1, r_5 = window_3
--     Window window_3 = rank() over (by z_2 order ok_1 asc)
--       Exchange hash by z_2
--         Scan other [ok, z]    -- blocks

-- name: window_over_all
select ok, rank() over (order by ok) r from other
-- expected:
-- Project ok_4 = ok_1, r_5 = window_3
--   Window window_3 = rank() over (by - order ok_1 asc)
--     Exchange gather
--       Scan other [ok]    -- blocks

-- name: window_of_small_table
select id, rank() over (order by id) r from kind
-- expected:
-- Project id_4 = id_1, r_5 = window_3
--   Exchange gather
--     Window window_3 = rank() over (by - order id_1 asc)
--       Scan kind [id]

-- name: union_all
select k a from event union all select ok from other union all select id from kind
-- expected:
-- Exchange gather
--   Union all
--     Union all
--       Project a_5 = k_1
--         Scan event [k]    -- range
--       Project ok_8 = ok_6
--         Scan other [ok]    -- blocks
--     Exchange hash by cast_14
--       Project cast_14 = cast(id_12 as bigint)
--         Project id_12 = id_10
--           Scan kind [id]

-- name: union_all_of_small
select id a from kind union all select 7
-- expected:
-- Exchange gather
--   Union all
--     Project a_3 = id_1
--       Scan kind [id]
--     Project 7_4 = 7
--       Values 1 row(s)

-- name: union
select kind a from event union select id from kind
-- expected:
-- Exchange gather
--   Union
--     Exchange hash by a_5
--       Project a_5 = kind_2
--         Scan event [kind]    -- blocks
--     Exchange hash by id_8
--       Project id_8 = id_6
--         Scan kind [id]

-- name: except_all
select ok a from other except all select k from event
-- expected:
-- Exchange gather
--   Except all
--     Exchange hash by a_3
--       Project a_3 = ok_1
--         Scan other [ok]    -- blocks
--     Exchange hash by k_8
--       Project k_8 = k_4
--         Scan event [k]    -- range

-- name: sort
select k, v from event order by v, k, x
-- expected:
-- Project k_5, v_6
--   Sort v_6 asc, k_5 asc, order_7 asc
--     Exchange gather
--       Project k_5 = k_1, v_6 = v_3, order_7 = x_4
--         Scan event [k, v, x]    -- range

-- name: limit
select k, v from event order by v, k, x limit 5 offset 2
-- expected:
-- Project k_5, v_6
--   Limit 5 offset 2
--     Sort v_6 asc, k_5 asc, order_7 asc
--       Exchange gather
--         Limit 7
--           Sort v_6 asc, k_5 asc, order_7 asc
--             Project k_5 = k_1, v_6 = v_3, order_7 = x_4
--               Scan event [k, v, x]    -- range

-- name: offset
select k, v from event order by v, k, x offset 55
-- expected:
-- Project k_5, v_6
--   Limit None offset 55
--     Sort v_6 asc, k_5 asc, order_7 asc
--       Exchange gather
--         Project k_5 = k_1, v_6 = v_3, order_7 = x_4
--           Scan event [k, v, x]    -- range

-- name: limit_of_any
select count(*) c from (select k from event limit 10) a join kind on true
-- expected:
-- Exchange gather
--   Project c_9 = count_8
--     Aggregate by [] of [count_8 = count(*)]
--       Join inner on True
--         Limit 10
--           Exchange gather
--             Limit 10
--               Project
--                 Scan event []    -- blocks
--         Scan kind []

-- name: limit_of_small_table
select count(*) c from (select id from kind limit 2) a join event on event.k > -1
-- expected:
-- Project c_9 = count_8
--   Project count_8 = coalesce(whole_dist2, 0)
--     Aggregate by [] of [whole_dist2 = sum(part_dist1)]
--       Exchange gather
--         Aggregate by [] of [part_dist1 = count(*)]
--           Join cross
--             Exchange broadcast
--               Exchange gather
--                 Limit 2
--                   Project
--                     Scan kind []
--             Filter (k_4 > -1)
--               Scan event [k]    -- range

-- name: join_with_one_site
select v, m from event join (select max(ok) m from other) t on k < m
-- expected:
-- Exchange gather
--   Project v_9 = v_3, m_10 = m_8
--     Join inner on (k_1 < m_8)
--       Scan event [k, v]    -- range
--       Exchange broadcast
--         Project m_8 = max_7
--           Project max_7 = whole_dist2
--             Aggregate by [] of [whole_dist2 = max(part_dist1)]
--               Exchange gather
--                 Aggregate by [] of [part_dist1 = max(ok_5)]
--                   Scan other [ok]    -- blocks

-- name: values
select k, q from event join (values (1), (2)) t(q) on kind = q
-- expected:
-- Exchange gather
--   Project k_6 = k_1, q_7 = col1_5
--     Join inner on (kind_2 = col1_5)
--       Scan event [k, kind]    -- range
--       Values 2 row(s)

-- name: bucket_local_join
select price, cost from buy join sell on bk = sk
-- expected:
-- Exchange gather
--   Project price_5 = price_2, cost_6 = cost_4
--     Join inner on (bk_1 = sk_3)
--       Scan buy [bk, price]    -- buckets of by_bk
--       Scan sell [sk, cost]    -- buckets of by_sk

-- name: grouping_in_buckets
select bk, sum(price) s from buy group by bk
-- expected:
-- Exchange gather
--   Project bk_4 = bk_1, s_5 = sum_3
--     Aggregate by [bk_1] of [sum_3 = sum(price_2)]
--       Scan buy [bk, price]    -- buckets of by_bk

-- name: equal_parts_are_placed_once
with t as (select z, count(*) c from other group by z) select a.z, a.c, b.c d from t a join t b on a.z < b.z
-- expected:
-- Exchange gather
--   Project z_10 = z_6, c_11 = c_7, d_12 = c_9
--     Join inner on (z_6 < z_8)
--       Project z_6 = z_4, c_7 = c_5
--         Project z_4 = z_2, c_5 = count_3
--           Project z_2, count_3 = whole_dist2
--             Aggregate by [z_2] of [whole_dist2 = sum(part_dist1)]
--               Exchange hash by z_2
--                 Aggregate by [z_2] of [part_dist1 = count(*)]
--                   Scan other [z]    -- blocks
--       Exchange broadcast
--         Project z_8 = z_4, c_9 = c_5
--           Project z_4 = z_2, c_5 = count_3
--             Project z_2, count_3 = whole_dist2
--               Aggregate by [z_2] of [whole_dist2 = sum(part_dist1)]
--                 Exchange hash by z_2
--                   Aggregate by [z_2] of [part_dist1 = count(*)]
--                     Scan other [z]    -- blocks
