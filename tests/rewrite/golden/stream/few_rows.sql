-- name: top_groups
select kind, count(*) c, sum(v) s from event group by kind order by c desc, kind limit 2
-- expected:
-- rows:
--   Join semi on (kind_2 <=> answer_key_0)
--     Input stage_1
--     Input answer_keys
-- tail:
--   Project kind_7, c_8, s_9
--     Limit 2
--       Sort c_8 desc, kind_7 asc
--         Project kind_7 = kind_2, c_8 = count_5, s_9 = sum_6
--           Project kind_2, count_5 = whole_stream2, sum_6 = whole_stream4
--             Aggregate by [kind_2] of [whole_stream2 = sum(part_stream1), whole_stream4 = sum(part_stream3)]
--               Input few_rows

-- name: top_keys_of_a_join
select label, z, count(*) c from event join kind on event.kind = id join other on k = ok group by label, z order by c desc, label, z limit 3
-- expected:
-- rows:
--   Join semi on ((label_6 <=> answer_key_0) and (z_8 <=> answer_key_1))
--     Input stage_1
--     Input answer_keys
-- tail:
--   Project label_10, z_11, c_12
--     Limit 3
--       Sort c_12 desc, label_10 asc, z_11 asc
--         Project label_10 = label_6, z_11 = z_8, c_12 = count_9
--           Project label_6, z_8, count_9 = whole_stream2
--             Aggregate by [label_6, z_8] of [whole_stream2 = sum(part_stream1)]
--               Input few_rows

-- name: no_keys
select count(*) c from event
-- expected:
-- None

-- name: key_is_not_shown
select count(*) c from event group by kind order by c limit 2
-- expected:
-- None
