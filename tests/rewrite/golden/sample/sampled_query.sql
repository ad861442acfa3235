-- name: sums_by_group
select kind, sum(x) as s, count(*) as n from event where k < 10 group by kind
-- expected:
-- parts:
--   Aggregate by [kind_2, sample_unit] of [part_core1 = sum(x_4), part_core3 = count(*), part_core5 = count(*)]
--     Filter (k_1 < 10)
--       Project k_1, kind_2, x_4, sample_unit = 0
--         Scan event [k, kind, x]
-- weighed:
--   Project replicate, sample_cell, sum_5 = whole_core2, count_6 = whole_core4, sample_rows = whole_core6
--     Aggregate by [replicate, sample_cell] of [whole_core2 = sum((unit_weight * part_core1)), whole_core4 = sum((unit_weight * cast(part_core3 as double))), whole_core6 = sum((unit_weight * cast(part_core5 as double)))]
--       Join inner on (sample_unit = unit_group)
--         Input sample_parts
--         Input weights

-- name: join_with_another_table
select label, avg(x) as a from event join kind on kind = id group by label having avg(x) > 3
-- expected:
-- parts:
--   Aggregate by [label_6, sample_unit] of [part_core1 = sum(x_4), part_core3 = count(x_4), part_core5 = count(*)]
--     Join inner on (kind_2 = id_5)
--       Project kind_2, x_4, sample_unit = 0
--         Scan event [kind, x]
--       Scan kind [id, label]
-- weighed:
--   Project replicate, sample_cell, avg_7 = average_of(whole_core2, whole_core4), sample_rows = whole_core6
--     Aggregate by [replicate, sample_cell] of [whole_core2 = sum((unit_weight * part_core1)), whole_core4 = sum((unit_weight * cast(part_core3 as double))), whole_core6 = sum((unit_weight * cast(part_core5 as double)))]
--       Join inner on (sample_unit = unit_group)
--         Input sample_parts
--         Input weights

-- name: spread_quantile_distinct_extreme
select stddev(x) as d, median(x) as m, count(distinct kind) as c, max(v) as most from event
-- expected:
-- parts:
--   Aggregate by [sample_unit] of [part_core9 = sum(cast(v_3 as double)), part_core11 = count(cast(v_3 as double)), part_core13 = count(*), part_core15 = count(x_4), part_core17 = sum((x_4 * x_4)), part_core19 = sum(x_4), part_core21 = count(cast(v_3 as double)), part_core23 = sum((cast(v_3 as double) * cast(v_3 as double))), part_core25 = sum(cast(v_3 as double))]
--     Project kind_2, v_3, x_4, sample_unit = 0
--       Scan event [kind, v, x]
-- weighed:
--   Project replicate, sample_cell, stddev_5 = sqrt(average_of(case(((moment_core4 - average_of((moment_core5 * moment_core5), moment_core3)) < 0.0), 0.0, (moment_core4 - average_of((moment_core5 * moment_core5), moment_core3))), (moment_core3 - 1.0))), avg_core1, var_pop_core2 = average_of(case(((moment_core7 - average_of((moment_core8 * moment_core8), moment_core6)) < 0.0), 0.0, (moment_core7 - average_of((moment_core8 * moment_core8), moment_core6))), (moment_core6 - 0.0)), sample_rows
--     Project replicate, sample_cell, avg_core1 = average_of(whole_core10, whole_core12), sample_rows = coalesce(whole_core14, 0.0), moment_core3 = coalesce(whole_core16, 0.0), moment_core4 = whole_core18, moment_core5 = whole_core20, moment_core6 = coalesce(whole_core22, 0.0), moment_core7 = whole_core24, moment_core8 = whole_core26
--       Aggregate by [replicate, sample_cell] of [whole_core10 = sum((unit_weight * part_core9)), whole_core12 = sum((unit_weight * cast(part_core11 as double))), whole_core14 = sum((unit_weight * cast(part_core13 as double))), whole_core16 = sum((unit_weight * cast(part_core15 as double))), whole_core18 = sum((unit_weight * part_core17)), whole_core20 = sum((unit_weight * part_core19)), whole_core22 = sum((unit_weight * cast(part_core21 as double))), whole_core24 = sum((unit_weight * part_core23)), whole_core26 = sum((unit_weight * part_core25))]
--         Join inner on (sample_unit = unit_group)
--           Input sample_parts
--           Input weights
-- Extreme max_8
-- Quantile percentile_6
-- Counted count_7

-- name: nested_aggregate_is_refused
select max(s) as m from (select kind, sum(x) as s from event group by kind)
-- expected:
-- refused: GroupBy below the last aggregate is not estimated from a sample of the view

-- name: view_twice_is_refused
select count(*) as n from event a join event b on a.k = b.k
-- expected:
-- refused: a sample of 'event' serves queries that name it once, not 2 times

-- name: rows_that_meet_none_are_refused
select count(*) as n from kind left join event on kind = id
-- expected:
-- refused: a left join that keeps rows which meet no row of the view is not estimated from a sample
