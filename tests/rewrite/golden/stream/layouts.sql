-- name: buckets_line_up
select price, count(*) c, sum(cost) s from buy join sell on bk = sk group by price
-- expected:
-- tried: base
-- tried: buy by_bk, sell by_sk
-- tail, ranged:
--   Project price_7, c_8, s_9
--     Project price_7 = price_2, c_8 = count_5, s_9 = sum_6
--       Project price_2, count_5 = whole_stream2, sum_6 = whole_stream4
--         Aggregate by [price_2] of [whole_stream2 = sum(part_stream1), whole_stream4 = sum(part_stream3)]
--           Input stage_1
-- stage_1, unit bk_1_unit, parts by [price_2]:
--   Aggregate by [bk_1_unit, price_2] of [part_stream1 = count(*), part_stream3 = sum(cost_4)]
--     Join inner on (bk_1 = sk_3)
--       Scan buy [bk, price, @unit]    -- units of by_bk
--       Scan sell [sk, cost]    -- units of by_sk

-- name: groups_in_buckets
select n, count(*) c from (select bk, count(*) n from buy group by bk) t group by n
-- expected:
-- tried: base
-- tried: buy by_bk
-- tail, ranged:
--   Project n_7, c_8
--     Project n_7 = n_5, c_8 = count_6
--       Project n_5, count_6 = whole_stream3
--         Aggregate by [n_5] of [whole_stream3 = sum(part_stream2)]
--           Input stage_1
-- stage_1, unit unit_stream1, parts by [n_5]:
--   Aggregate by [unit_stream1, n_5] of [part_stream2 = count(*)]
--     Project n_5 = count_3, unit_stream1
--       Aggregate by [bk_1] of [count_3 = count(*), unit_stream1 = min(bk_1_unit)]
--         Scan buy [bk, @unit]    -- units of by_bk

-- name: shuffled
select g, avg(y) a, count(*) c from noise group by g
-- expected:
-- tried: base
-- tail:
--   Project g_5, a_6, c_7
--     Project g_5 = g_1, a_6 = avg_3, c_7 = count_4
--       Project g_1, avg_3 = average_of(whole_stream2, whole_stream4), count_4 = whole_stream6
--         Aggregate by [g_1] of [whole_stream2 = sum(part_stream1), whole_stream4 = sum(part_stream3), whole_stream6 = sum(part_stream5)]
--           Input stage_1
-- stage_1, unit g_1_unit, parts by [g_1]:
--   Aggregate by [g_1_unit, g_1] of [part_stream1 = sum(y_2), part_stream3 = count(y_2), part_stream5 = count(*)]
--     Scan noise [g, y, @unit]    -- units of shuffled

-- name: base_where_rows_meet
select k, sum(v) s from event group by k
-- expected:
-- tried: base
-- tail, ranged:
--   Project k_6, s_7
--     Input stage_1
-- stage_1, units:
--   Project k_6, s_7
--     Project k_6 = k_1, s_7 = sum_5
--       Aggregate by [k_1] of [sum_5 = sum(v_3)]
--         Scan event [k, v]    -- units
