-- name: variances
select kind, var_pop(x) a, stddev(x) b, count(*) c from event group by kind
-- expected:
-- Project kind_2, var_pop_5 = average_of(case(((moment_sums2 - average_of((moment_sums3 * moment_sums3), cast(moment_sums1 as double))) < 0.0), 0.0, (moment_sums2 - average_of((moment_sums3 * moment_sums3), cast(moment_sums1 as double)))), (cast(moment_sums1 as double) - 0.0)), stddev_6 = sqrt(average_of(case(((moment_sums2 - average_of((moment_sums3 * moment_sums3), cast(moment_sums1 as double))) < 0.0), 0.0, (moment_sums2 - average_of((moment_sums3 * moment_sums3), cast(moment_sums1 as double)))), (cast(moment_sums1 as double) - 1.0))), count_7
--   Aggregate by [kind_2] of [count_7 = count(*), moment_sums1 = count(x_4), moment_sums2 = sum((x_4 * x_4)), moment_sums3 = sum(x_4)]
--     Scan event [kind, x]

-- name: of_pairs
select covar_pop(x, v) a, covar_samp(x, k) b, corr(x, k) c from event
-- expected:
-- Project covar_pop_5 = average_of((moment_sums2 - average_of((moment_sums3 * moment_sums4), cast(moment_sums1 as double))), (cast(moment_sums1 as double) - 0.0)), covar_samp_6 = average_of((moment_sums6 - average_of((moment_sums7 * moment_sums8), cast(moment_sums5 as double))), (cast(moment_sums5 as double) - 1.0)), corr_7 = average_of(average_of((moment_sums6 - average_of((moment_sums7 * moment_sums8), cast(moment_sums5 as double))), (cast(moment_sums5 as double) - 0.0)), sqrt((average_of(case(((moment_sums9 - average_of((moment_sums7 * moment_sums7), cast(moment_sums5 as double))) < 0.0), 0.0, (moment_sums9 - average_of((moment_sums7 * moment_sums7), cast(moment_sums5 as double)))), (cast(moment_sums5 as double) - 0.0)) * average_of(case(((moment_sums11 - average_of((moment_sums8 * moment_sums8), cast(moment_sums10 as double))) < 0.0), 0.0, (moment_sums11 - average_of((moment_sums8 * moment_sums8), cast(moment_sums10 as double)))), (cast(moment_sums10 as double) - 0.0)))))
--   Aggregate by [] of [moment_sums1 = count(case(isnull(cast(v_3 as double)), null, x_4)), moment_sums2 = sum((case(isnull(cast(v_3 as double)), null, x_4) * case(isnull(x_4), null, cast(v_3 as double)))), moment_sums3 = sum(case(isnull(cast(v_3 as double)), null, x_4)), moment_sums4 = sum(case(isnull(x_4), null, cast(v_3 as double))), moment_sums5 = count(case(isnull(cast(k_1 as double)), null, x_4)), moment_sums6 = sum((case(isnull(cast(k_1 as double)), null, x_4) * case(isnull(x_4), null, cast(k_1 as double)))), moment_sums7 = sum(case(isnull(cast(k_1 as double)), null, x_4)), moment_sums8 = sum(case(isnull(x_4), null, cast(k_1 as double))), moment_sums9 = sum((case(isnull(cast(k_1 as double)), null, x_4) * case(isnull(cast(k_1 as double)), null, x_4))), moment_sums10 = count(case(isnull(x_4), null, cast(k_1 as double))), moment_sums11 = sum((case(isnull(x_4), null, cast(k_1 as double)) * case(isnull(x_4), null, cast(k_1 as double))))]
--     Scan event [k, v, x]

-- name: filtered
select variance(k) filter (where x > 20) a from event
-- expected:
-- Project variance_5 = average_of(case(((moment_sums2 - average_of((moment_sums3 * moment_sums3), cast(moment_sums1 as double))) < 0.0), 0.0, (moment_sums2 - average_of((moment_sums3 * moment_sums3), cast(moment_sums1 as double)))), (cast(moment_sums1 as double) - 1.0))
--   Aggregate by [] of [moment_sums1 = count(cast(k_1 as double)) filter (x_4 > 20.0), moment_sums2 = sum((cast(k_1 as double) * cast(k_1 as double))) filter (x_4 > 20.0), moment_sums3 = sum(cast(k_1 as double)) filter (x_4 > 20.0)]
--     Scan event [k, x]

-- name: nothing_to_do
select sum(x) s from event
-- expected:
-- None
