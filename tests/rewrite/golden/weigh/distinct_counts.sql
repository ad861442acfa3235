-- name: distinct
select count(distinct kind) d from event
-- expected:
-- d_6 counts by []:
--   Aggregate by [unit_group, seen_in] of [keys = count(*)]
--     Window seen_in = count(*) over (by value_stream1 order -)
--       Filter isnotnull(value_stream1)
--         Aggregate by [value_stream1, unit_group = kind_2_unit] of []
--           Input stage_1

-- name: by_group
select z, count(distinct kind) d from event join other on k = ok group by z
-- expected:
-- d_9 counts by [z_6]:
--   Aggregate by [key_0 = z_6, unit_group, seen_in] of [keys = count(*)]
--     Window seen_in = count(*) over (by z_6, value_stream1 order -)
--       Filter isnotnull(value_stream1)
--         Aggregate by [z_6, value_stream1, unit_group = k_1_unit] of []
--           Input stage_1

-- name: rows_of_a_grouping
select count(*) n from (select kind, sum(v) s from event group by kind) t
-- expected:
-- n_9 counts by []:
--   Aggregate by [unit_group, seen_in] of [keys = count(*)]
--     Window seen_in = count(*) over (by kind_2 order -)
--       Aggregate by [kind_2, unit_group = kind_2_unit] of []
--         Input stage_1

-- name: average_of_sums
select avg(s) a from (select kind, sum(v) s from event group by kind) t
-- expected:
-- a_9 counts by []:
--   Aggregate by [unit_group, seen_in] of [keys = count(*)]
--     Window seen_in = count(*) over (by kind_2 order -)
--       Aggregate by [kind_2, unit_group = kind_2_unit] of []
--         Filter isnotnull(part_stream1)
--           Input stage_1
-- totals:
--   Aggregate by [unit_group = kind_2_unit] of [total = sum(cast(part_stream1 as double))]
--     Input stage_1

-- name: counted_after_a_filter
select count(*) n from (select kind, sum(v) s from event group by kind having sum(v) > 10) t
-- expected:
-- None
