-- name: partial_results
select kind, count(*) c, sum(v) s, avg(x) a from event where x > 5 group by kind order by kind
-- expected:
-- tail:
--   Project kind_8, c_9, s_10, a_11
--     Sort kind_8 asc
--       Project kind_8 = kind_2, c_9 = count_5, s_10 = sum_6, a_11 = avg_7
--         Project kind_2, count_5 = whole_stream2, sum_6 = whole_stream4, avg_7 = average_of(whole_stream6, whole_stream8)
--           Aggregate by [kind_2] of [whole_stream2 = sum(part_stream1), whole_stream4 = sum(part_stream3), whole_stream6 = sum(part_stream5), whole_stream8 = sum(part_stream7)]
--             Input stage_1
-- stage_1, unit kind_2_unit, parts by [kind_2]:
--   Aggregate by [kind_2_unit, kind_2] of [part_stream1 = count(*), part_stream3 = sum(v_3), part_stream5 = sum(x_4), part_stream7 = count(x_4)]
--     Filter (x_4 > 5.0)
--       Scan event [kind, v, x, @unit]    -- units

-- name: without_keys
select count(*) c, sum(v) s from event
-- expected:
-- tail:
--   Project c_7, s_8
--     Project c_7 = count_5, s_8 = sum_6
--       Project count_5 = coalesce(whole_stream2, 0), sum_6 = whole_stream4
--         Aggregate by [] of [whole_stream2 = sum(part_stream1), whole_stream4 = sum(part_stream3)]
--           Input stage_1
-- stage_1, unit v_3_unit, parts by []:
--   Aggregate by [v_3_unit] of [part_stream1 = count(*), part_stream3 = sum(v_3)]
--     Scan event [v, @unit]    -- units

-- name: complete_in_a_unit
select k, sum(v) s from event group by k order by s desc, k limit 5
-- expected:
-- tail, ranged:
--   Project k_6, s_7
--     Limit 5
--       Sort s_7 desc, k_6 asc
--         Input stage_1
-- stage_1, units:
--   Project k_6, s_7
--     Limit 5
--       Sort s_7 desc, k_6 asc
--         Project k_6 = k_1, s_7 = sum_5
--           Aggregate by [k_1] of [sum_5 = sum(v_3)]
--             Scan event [k, v]    -- units

-- name: rows
select k, v from event where v > 9
-- expected:
-- tail:
--   Project k_5, v_6
--     Input stage_1
-- stage_1, units:
--   Project k_5, v_6
--     Project k_5 = k_1, v_6 = v_3
--       Filter (v_3 > 9.0)
--         Scan event [k, v]    -- units

-- name: top_rows
select k, v from event order by v desc, k, x limit 4
-- expected:
-- tail:
--   Project k_5, v_6
--     Project k_5, v_6
--       Limit 4
--         Sort v_6 desc, k_5 asc, order_7 asc
--           Input stage_1
-- stage_1, units:
--   Project k_5, v_6, order_7
--     Limit 4
--       Sort v_6 desc, k_5 asc, order_7 asc
--         Project k_5 = k_1, v_6 = v_3, order_7 = x_4
--           Scan event [k, v, x]    -- units

-- name: offset
select k, v from event order by v desc, k, x offset 50
-- expected:
-- tail:
--   Project k_5, v_6
--     Project k_5, v_6
--       Limit None offset 50
--         Sort v_6 desc, k_5 asc, order_7 asc
--           Input stage_1
-- stage_1, units:
--   Project k_5, v_6, order_7
--     Project k_5 = k_1, v_6 = v_3, order_7 = x_4
--       Scan event [k, v, x]    -- units

-- name: limit_of_any
select count(*) c from (select k from event limit 10) t
-- expected:
-- tail:
--   Project c_7
--     Project c_7 = count_6
--       Aggregate by [] of [count_6 = count(*)]
--         Limit 10
--           Input stage_1
-- stage_1, unit unit_stream1:
--   Limit 10
--     Project unit_stream1
--       Scan event [@unit]    -- units

-- name: sort
select k, v from event order by v desc, k, x
-- expected:
-- tail:
--   Project k_5, v_6
--     Project k_5, v_6
--       Sort v_6 desc, k_5 asc, order_7 asc
--         Input stage_1
-- stage_1, units:
--   Project k_5, v_6, order_7
--     Project k_5 = k_1, v_6 = v_3, order_7 = x_4
--       Scan event [k, v, x]    -- units

-- name: small_table
select label, count(*) c from event join kind on event.kind = id group by label
-- expected:
-- tail:
--   Project label_8, c_9
--     Project label_8 = label_6, c_9 = count_7
--       Project label_6, count_7 = whole_stream2
--         Aggregate by [label_6] of [whole_stream2 = sum(part_stream1)]
--           Input stage_1
-- stage_1, unit kind_2_unit, parts by [label_6]:
--   Aggregate by [kind_2_unit, label_6] of [part_stream1 = count(*)]
--     Join inner on (kind_2 = id_5)
--       Scan event [kind, @unit]    -- units
--       Scan kind [id, label]

-- name: small_table_first
select label, sum(v) s from kind join event on event.kind = id group by label
-- expected:
-- tail:
--   Project label_8, s_9
--     Project label_8 = label_2, s_9 = sum_7
--       Project label_2, sum_7 = whole_stream2
--         Aggregate by [label_2] of [whole_stream2 = sum(part_stream1)]
--           Input stage_1
-- stage_1, unit kind_4_unit, parts by [label_2]:
--   Aggregate by [kind_4_unit, label_2] of [part_stream1 = sum(v_5)]
--     Join inner on (kind_4 = id_1)
--       Scan kind [id, label]
--       Scan event [kind, v, @unit]    -- units

-- name: rows_meet_in_units
select w, count(*) c from event join visit on k = vk group by w
-- expected:
-- tail, ranged:
--   Project w_8, c_9
--     Project w_8 = w_6, c_9 = count_7
--       Project w_6, count_7 = whole_stream2
--         Aggregate by [w_6] of [whole_stream2 = sum(part_stream1)]
--           Input stage_1
-- stage_1, unit k_1_unit, parts by [w_6]:
--   Aggregate by [k_1_unit, w_6] of [part_stream1 = count(*)]
--     Join inner on (k_1 = vk_5)
--       Scan event [k, @unit]    -- units
--       Scan visit [vk, w]    -- units

-- name: left_join_in_units
select w, count(*) c from event left join visit on k = vk group by w
-- expected:
-- tail, ranged:
--   Project w_8, c_9
--     Project w_8 = w_6, c_9 = count_7
--       Project w_6, count_7 = whole_stream2
--         Aggregate by [w_6] of [whole_stream2 = sum(part_stream1)]
--           Input stage_1
-- stage_1, unit k_1_unit, parts by [w_6]:
--   Aggregate by [k_1_unit, w_6] of [part_stream1 = count(*)]
--     Join left on (k_1 = vk_5)
--       Scan event [k, @unit]    -- units
--       Scan visit [vk, w]    -- units

-- name: semi_in_units
select count(*) c from event where exists (select 1 from visit where vk = k and w > 3)
-- expected:
-- tail, ranged:
--   Project c_9
--     Project c_9 = count_8
--       Project count_8 = coalesce(whole_stream2, 0)
--         Aggregate by [] of [whole_stream2 = sum(part_stream1)]
--           Input stage_1
-- stage_1, unit k_1_unit, parts by []:
--   Aggregate by [k_1_unit] of [part_stream1 = count(*)]
--     Join semi on (vk_5 = k_1)
--       Scan event [k, @unit]    -- units
--       Project vk_5
--         Filter (w_6 > 3)
--           Scan visit [vk, w]    -- units

-- name: smaller_side_is_read_whole
select z, count(*) c from event join other on k = ok group by z
-- expected:
-- tail:
--   Project z_8, c_9
--     Project z_8 = z_6, c_9 = count_7
--       Project z_6, count_7 = whole_stream2
--         Aggregate by [z_6] of [whole_stream2 = sum(part_stream1)]
--           Input stage_1
-- stage_1, unit k_1_unit, parts by [z_6]:
--   Aggregate by [k_1_unit, z_6] of [part_stream1 = count(*)]
--     Join inner on (k_1 = ok_5)
--       Scan event [k, @unit]    -- units
--       Scan other [ok, z]

-- name: kept_side_is_streamed
select count(*) c, count(w) d from other left join visit on ok = vk
-- expected:
-- tail:
--   Project c_7, d_8
--     Project c_7 = count_5, d_8 = count_6
--       Project count_5 = coalesce(whole_stream2, 0), count_6 = coalesce(whole_stream4, 0)
--         Aggregate by [] of [whole_stream2 = sum(part_stream1), whole_stream4 = sum(part_stream3)]
--           Input stage_1
-- stage_1, unit ok_1_unit, parts by []:
--   Aggregate by [ok_1_unit] of [part_stream1 = count(*), part_stream3 = count(w_4)]
--     Join left on (ok_1 = vk_3)
--       Scan other [ok, @unit]    -- units
--       Scan visit [vk, w]

-- name: distinct
select count(distinct kind) d from event
-- expected:
-- tail:
--   Project d_6
--     Project d_6 = count_5
--       Project count_5
--         Aggregate by [] of [count_5 = count(value_stream1)]
--           Project value_stream1
--             Aggregate by [value_stream1] of []
--               Input stage_1
-- stage_1, unit kind_2_unit, parts by [value_stream1]:
--   Aggregate by [kind_2_unit, value_stream1 = kind_2] of []
--     Scan event [kind, @unit]    -- units

-- name: distinct_by_key
select kind, count(distinct k) d, sum(v) s from event group by kind
-- expected:
-- tail:
--   Project kind_7, d_8, s_9
--     Project kind_7 = kind_2, d_8 = count_5, s_9 = sum_6
--       Project kind_2, count_5, sum_6 = whole_stream3
--         Aggregate by [kind_2] of [whole_stream3 = sum(part_stream2), count_5 = count(value_stream1)]
--           Project kind_2, value_stream1, part_stream2 = whole_stream5
--             Aggregate by [kind_2, value_stream1] of [whole_stream5 = sum(part_stream4)]
--               Input stage_1
-- stage_1, unit k_1_unit, parts by [kind_2, value_stream1]:
--   Aggregate by [k_1_unit, kind_2, value_stream1 = k_1] of [part_stream4 = sum(v_3)]
--     Scan event [k, kind, v, @unit]    -- units

-- name: grouping_sets
select kind, z, count(*) c, grouping_id() g from event join other on k = ok group by cube(kind, z)
-- expected:
-- tail:
--   Project kind_11, z_12, c_13, g_14
--     Project kind_11 = kind_8, z_12 = z_9, c_13 = count_10, g_14 = grouping_id_7
--       Project kind_8, z_9, count_10 = whole_stream2, grouping_id_7
--         Aggregate by [kind_8, z_9, grouping_id_7] of [whole_stream2 = sum(part_stream1)]
--           Input stage_1
-- stage_1, unit k_1_unit, parts by [kind_8, z_9, grouping_id_7]:
--   Aggregate by [k_1_unit, kind_8 = kind_2, z_9 = z_6] of [part_stream1 = count(*)] grouping sets [(0, 1, 2), (0, 1), (0, 2), (0,)]
--     Join inner on (k_1 = ok_5)
--       Scan event [k, kind, @unit]    -- units
--       Scan other [ok, z]

-- name: aggregate_of_aggregate
select n, count(*) c from (select kind, count(*) n from event group by kind) t group by n
-- expected:
-- tail:
--   Project n_9, c_10
--     Project n_9 = n_7, c_10 = count_8
--       Aggregate by [n_7] of [count_8 = count(*)]
--         Project n_7 = count_5
--           Project count_5 = whole_stream2
--             Aggregate by [kind_2] of [whole_stream2 = sum(part_stream1)]
--               Input stage_1
-- stage_1, unit kind_2_unit, parts by [kind_2]:
--   Aggregate by [kind_2_unit, kind_2] of [part_stream1 = count(*)]
--     Scan event [kind, @unit]    -- units

-- name: having
select kind, count(*) c from event group by kind having count(*) > 14
-- expected:
-- tail:
--   Project kind_6, c_7
--     Project kind_6 = kind_2, c_7 = count_5
--       Filter (count_5 > 14)
--         Project kind_2, count_5 = whole_stream2
--           Aggregate by [kind_2] of [whole_stream2 = sum(part_stream1)]
--             Input stage_1
-- stage_1, unit kind_2_unit, parts by [kind_2]:
--   Aggregate by [kind_2_unit, kind_2] of [part_stream1 = count(*)]
--     Scan event [kind, @unit]    -- units

-- name: window_in_units
select k, v, rank() over (partition by k order by v) r from event
-- expected:
-- tail, ranged:
--   Project k_6, v_7, r_8
--     Input stage_1
-- stage_1, units:
--   Project k_6, v_7, r_8
--     Project k_6 = k_1, v_7 = v_3, r_8 = window_5
--       Window window_5 = rank() over (by k_1 order v_3 asc)
--         Scan event [k, v]    -- units

-- name: window_at_the_driver
select kind, c, rank() over (order by c) r from (select kind, count(*) c from event group by kind) t
-- expected:
-- tail:
--   Project kind_9, c_10, r_11
--     Project kind_9 = kind_6, c_10 = c_7, r_11 = window_8
--       Window window_8 = rank() over (by - order c_7 asc)
--         Project kind_6 = kind_2, c_7 = count_5
--           Project kind_2, count_5 = whole_stream2
--             Aggregate by [kind_2] of [whole_stream2 = sum(part_stream1)]
--               Input stage_1
-- stage_1, unit kind_2_unit, parts by [kind_2]:
--   Aggregate by [kind_2_unit, kind_2] of [part_stream1 = count(*)]
--     Scan event [kind, @unit]    -- units

-- name: window_over_rows
select k, rank() over (order by x, k, v) r from event
-- expected:
-- tail:
--   Project k_6, r_7
--     Project k_6 = k_1, r_7 = window_5
--       Window window_5 = rank() over (by - order x_4 asc, k_1 asc, v_3 asc)
--         Input stage_1
-- stage_1, unit k_1_unit:
--   Scan event [k, v, x, @unit]    -- units

-- name: union_all
select a, count(*) c from (select k a from event union all select vk from visit) t group by a
-- expected:
-- tail:
--   Project a_11, c_12
--     Project a_11 = a_9, c_12 = count_10
--       Project a_9, count_10 = whole_stream5
--         Aggregate by [a_9] of [whole_stream5 = sum(part_stream4)]
--           Input stage_1
-- stage_1, unit unit_stream1, parts by [a_9]:
--   Aggregate by [unit_stream1, a_9] of [part_stream4 = count(*)]
--     Union all
--       Project a_5, unit_stream2 = k_1_unit
--         Project a_5 = k_1, k_1_unit
--           Scan event [k, @unit]    -- units
--       Project vk_8, unit_stream3 = vk_6_unit
--         Project vk_8 = vk_6, vk_6_unit
--           Scan visit [vk, @unit]    -- units

-- name: union_with_small
select kind a from event union all select id from kind
-- expected:
-- tail:
--   Project a_9
--     Union all
--       Project a_5
--         Input stage_1
--       Project id_8
--         Input stage_2
-- stage_1, units:
--   Project a_5
--     Project a_5 = kind_2
--       Scan event [kind]    -- units
-- stage_2, once:
--   Project id_8 = id_6
--     Scan kind [id]

-- name: union
select kind a from event union select id from kind
-- expected:
-- tail:
--   Project a_9
--     Union
--       Project a_5
--         Input stage_1
--       Project id_8
--         Input stage_2
-- stage_1, units:
--   Project a_5
--     Project a_5 = kind_2
--       Scan event [kind]    -- units
-- stage_2, once:
--   Project id_8 = id_6
--     Scan kind [id]

-- name: intersect
select k a from event intersect select ok from other
-- expected:
-- tail:
--   Project a_9
--     Intersect
--       Project a_5
--         Input stage_1
--       Project ok_8
--         Input stage_2
-- stage_1, units:
--   Project a_5
--     Project a_5 = k_1
--       Scan event [k]    -- units
-- stage_2, units:
--   Project ok_8
--     Project ok_8 = ok_6
--       Scan other [ok]    -- units

-- name: lookup_put_off
select e.k, e.v, m.mean from event e join (select kind, avg(v) mean from event group by kind) m on e.kind = m.kind
-- expected:
-- tail:
--   Project k_12, v_13, mean_14
--     Project k_12, v_13, mean_14 = mean_11
--       Join inner on (kind_2 = kind_10)
--         Input stage_2
--         Project kind_10 = kind_6, mean_11 = avg_9
--           Project kind_6, avg_9 = average_of(whole_stream2, whole_stream4)
--             Aggregate by [kind_6] of [whole_stream2 = sum(part_stream1), whole_stream4 = sum(part_stream3)]
--               Input stage_1
-- stage_1, unit kind_6_unit, parts by [kind_6]:
--   Aggregate by [kind_6_unit, kind_6] of [part_stream1 = sum(v_7), part_stream3 = count(v_7)]
--     Scan event [kind, v, @unit]    -- units
-- stage_2, units:
--   Project kind_2, k_12, v_13
--     Project kind_2, k_12 = k_1, v_13 = v_3
--       Scan event [k, kind, v]    -- units

-- name: lookup_in_outputs
select k, v - (select avg(v) from event) d from event
-- expected:
-- tail:
--   Project k_11, d_12
--     Project k_11, d_12 = (v_3 - avg(v)_10)
--       Join cross
--         Input stage_2
--         Project avg(v)_10 = avg_9
--           Project avg_9 = average_of(whole_stream2, whole_stream4)
--             Aggregate by [] of [whole_stream2 = sum(part_stream1), whole_stream4 = sum(part_stream3)]
--               Input stage_1
-- stage_1, unit v_7_unit, parts by []:
--   Aggregate by [v_7_unit] of [part_stream1 = sum(v_7), part_stream3 = count(v_7)]
--     Scan event [v, @unit]    -- units
-- stage_2, units:
--   Project v_3, k_11
--     Project v_3, k_11 = k_1
--       Scan event [k, v]    -- units

-- name: lookup_in_keys
select e.v > m.mean p, count(*) c from event e join (select kind, avg(v) mean from event group by kind) m on e.kind = m.kind group by e.v > m.mean
-- expected:
-- tail:
--   Project p_14, c_15
--     Project p_14 = key_12, c_15 = count_13
--       Aggregate by [key_12 = (cast(v_3 as decimal(12,5)) > mean_11)] of [count_13 = count(*)]
--         Join inner on (kind_2 = kind_10)
--           Input stage_2
--           Project kind_10 = kind_6, mean_11 = avg_9
--             Project kind_6, avg_9 = average_of(whole_stream2, whole_stream4)
--               Aggregate by [kind_6] of [whole_stream2 = sum(part_stream1), whole_stream4 = sum(part_stream3)]
--                 Input stage_1
-- stage_1, unit kind_6_unit, parts by [kind_6]:
--   Aggregate by [kind_6_unit, kind_6] of [part_stream1 = sum(v_7), part_stream3 = count(v_7)]
--     Scan event [kind, v, @unit]    -- units
-- stage_2, unit kind_2_unit:
--   Scan event [kind, v, @unit]    -- units

-- name: lookup_in_or
select count(*) c, sum(v) s from event where v > (select avg(v) from event) or kind = 3
-- expected:
-- tail:
--   Project c_13, s_14
--     Project c_13 = count_11, s_14 = sum_12
--       Project count_11 = coalesce(whole_stream6, 0), sum_12 = whole_stream8
--         Aggregate by [] of [whole_stream6 = sum(part_stream5), whole_stream8 = sum(part_stream7)]
--           Union all
--             Project part_stream5, part_stream7
--               Filter decided_stream9
--                 Input stage_2
--             Project part_stream5, part_stream7
--               Join inner on ((cast(v_3 as decimal(12,5)) > avg(v)_10) or (kind_2 = 3))
--                 Filter not(decided_stream9)
--                   Input stage_2
--                 Project avg(v)_10 = avg_9
--                   Project avg_9 = average_of(whole_stream2, whole_stream4)
--                     Aggregate by [] of [whole_stream2 = sum(part_stream1), whole_stream4 = sum(part_stream3)]
--                       Input stage_1
-- stage_1, unit v_7_unit, parts by []:
--   Aggregate by [v_7_unit] of [part_stream1 = sum(v_7), part_stream3 = count(v_7)]
--     Scan event [v, @unit]    -- units
-- stage_2, unit kind_2_unit, parts by [kind_2, v_3, decided_stream9]:
--   Aggregate by [kind_2_unit, kind_2 = case(((coalesce((cast(cast(v_3 as decimal(12,5)) as double) > high@0_0), False) or coalesce((kind_2 = 3), False)) and isnotnull(low@0_0)), null, kind_2), v_3 = case(((coalesce((cast(cast(v_3 as decimal(12,5)) as double) > high@0_0), False) or coalesce((kind_2 = 3), False)) and isnotnull(low@0_0)), null, v_3), decided_stream9 = ((coalesce((cast(cast(v_3 as decimal(12,5)) as double) > high@0_0), False) or coalesce((kind_2 = 3), False)) and isnotnull(low@0_0))] of [part_stream5 = count(*), part_stream7 = sum(v_3)]
--     Filter not(((isnull(cast(cast(v_3 as decimal(12,5)) as double)) or coalesce((cast(cast(v_3 as decimal(12,5)) as double) <= low@0_0), False)) and not(coalesce((kind_2 = 3), False))))
--       Join left on True
--         Scan event [kind, v, @unit]    -- units
--         Input ranges_2
-- ranges_2, for [kind_2, v_3] until decided_stream9:
--   Project value_0 = cast(avg(v)_10 as double)
--     Project avg(v)_10 = avg_9
--       Project avg_9 = average_of(whole_stream2, whole_stream4)
--         Aggregate by [] of [whole_stream2 = sum(part_stream1), whole_stream4 = sum(part_stream3)]
--           Input stage_1

-- name: deviations
select kind, stddev(x) s, count(*) c from event group by kind
-- expected:
-- tail, not mergeable:
--   Project kind_7, s_8, c_9
--     Project kind_7 = kind_2, s_8 = stddev_5, c_9 = count_6
--       Project kind_2, stddev_5 = sqrt(average_of(case(((moment_stream2 - average_of((moment_stream3 * moment_stream3), cast(moment_stream1 as double))) < 0.0), 0.0, (moment_stream2 - average_of((moment_stream3 * moment_stream3), cast(moment_stream1 as double)))), (cast(moment_stream1 as double) - 1.0))), count_6
--         Project kind_2, count_6 = whole_stream5, moment_stream1 = whole_stream7, moment_stream2 = whole_stream9, moment_stream3 = whole_stream11
--           Aggregate by [kind_2] of [whole_stream5 = sum(part_stream4), whole_stream7 = sum(part_stream6), whole_stream9 = sum(part_stream8), whole_stream11 = sum(part_stream10)]
--             Input stage_1
-- stage_1, unit kind_2_unit, parts by [kind_2]:
--   Aggregate by [kind_2_unit, kind_2] of [part_stream4 = count(*), part_stream6 = count(x_4), part_stream8 = sum((x_4 * x_4)), part_stream10 = sum(x_4)]
--     Scan event [kind, x, @unit]    -- units

-- name: wanted_table
-- streamed: visit
select count(*) c, sum(w) s from other join visit on ok = vk
-- expected:
-- tail:
--   Project c_7, s_8
--     Project c_7 = count_5, s_8 = sum_6
--       Project count_5 = coalesce(whole_stream2, 0), sum_6 = whole_stream4
--         Aggregate by [] of [whole_stream2 = sum(part_stream1), whole_stream4 = sum(part_stream3)]
--           Input stage_1
-- stage_1, unit vk_3_unit, parts by []:
--   Aggregate by [vk_3_unit] of [part_stream1 = count(*), part_stream3 = sum(w_4)]
--     Join inner on (ok_1 = vk_3)
--       Scan other [ok]
--       Scan visit [vk, w, @unit]    -- units

-- name: no_columns
select 1 as one from event
-- expected:
-- tail:
--   Project one_5
--     Input stage_1
-- stage_1, units:
--   Project one_5
--     Project one_5 = 1
--       Scan event []    -- units

-- name: union_of_two
select count(*) c from (select k a from event union select vk from visit) t
-- expected:
-- tail:
--   Project c_11
--     Project c_11 = count_10
--       Aggregate by [] of [count_10 = count(*)]
--         Project
--           Aggregate by [a_9] of []
--             Input stage_1
-- stage_1, unit unit_stream1, parts by [a_9]:
--   Aggregate by [unit_stream1, a_9] of []
--     Union all
--       Project a_5, unit_stream2 = k_1_unit
--         Project a_5 = k_1, k_1_unit
--           Scan event [k, @unit]    -- units
--       Project vk_8, unit_stream3 = vk_6_unit
--         Project vk_8 = vk_6, vk_6_unit
--           Scan visit [vk, @unit]    -- units
