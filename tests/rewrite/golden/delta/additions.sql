-- name: sums
select kind, sum(v) as v, count(*) as n from event group by kind
-- expected:
-- added:
--   Aggregate by [kind_2] of [sum_5 = sum((v_3 * weight_delta1)), count_6 = sum(weight_delta1), part_kept1 = sum(weight_delta1) filter isnotnull(v_3)]
--     Project kind_2 = kind, v_3 = v, weight_delta1 = nearly_weight
--       Input event@change

-- name: sums_of_what_came
-- grew: event
select kind, sum(v) as v, count(*) as n from event group by kind
-- expected:
-- added:
--   Aggregate by [kind_2] of [sum_5 = sum(v_3), count_6 = count(*), part_kept1 = count(v_3)]
--     Project kind_2 = kind, v_3 = v, weight_delta1 = nearly_weight
--       Input event@change

-- name: a_least_value_of_what_came
-- grew: event
select kind, min(v) as v from event group by kind
-- expected:
-- added:
--   Aggregate by [kind_2] of [min_5 = min(v_3), part_kept1 = count(*)]
--     Project kind_2 = kind, v_3 = v, weight_delta1 = nearly_weight
--       Input event@change

-- name: all_rows
select count(*) as n, count(v) as m from event
-- expected:
-- added:
--   Aggregate by [] of [count_5 = sum(weight_delta1), count_6 = sum(weight_delta1) filter isnotnull(v_3)]
--     Project v_3 = v, weight_delta1 = nearly_weight
--       Input event@change
