-- name: median
-- step: 3
select percentile(x, 0.5) m from event
-- expected:
-- quantiles and others:
--   Aggregate by [] of [percentile_5 = percentile(value_thin1, 0.5)]
--     Project value_thin1, unit
--       Filter ((cast(place_rows1 as bigint) % 3) = ((unit * 2) % 3))
--         Window place_rows1 = row_number() over (by unit order value_thin1 asc)
--           Project value_thin1 = x_4, unit
--             Filter isnotnull(x_4)
--               Project k_1, kind_2, v_3, x_4, unit = (k_1 % 4)
--                 Scan event [k, kind, v, x]

-- name: by_key_beside_others
-- step: 4
select kind, percentile(v, 0.25) a, percentile(v, 0.75) b, count(*) c from event group by kind
-- expected:
-- quantiles and others:
--   Project kind_2, percentile_5, percentile_6, count_7
--     Join left on (kind_2 <=> key_both1)
--       Aggregate by [kind_2] of [count_7 = count(*)]
--         Project k_1, kind_2, v_3, x_4, unit = (k_1 % 4)
--           Scan event [k, kind, v, x]
--       Project key_both1 = kind_2, percentile_5, percentile_6
--         Aggregate by [kind_2] of [percentile_5 = percentile(value_thin1, 0.25), percentile_6 = percentile(value_thin1, 0.75)]
--           Project kind_2, value_thin1, unit
--             Filter ((cast(place_rows1 as bigint) % 4) = ((unit * 2) % 4))
--               Window place_rows1 = row_number() over (by unit order kind_2 asc, value_thin1 asc)
--                 Project kind_2, value_thin1 = cast(v_3 as double), unit
--                   Filter isnotnull(cast(v_3 as double))
--                     Project k_1, kind_2, v_3, x_4, unit = (k_1 % 4)
--                       Scan event [k, kind, v, x]

-- name: filtered
-- step: 2
select percentile(x, 0.5) filter (where kind = 1) m, count(*) c from event
-- expected:
-- quantiles and others:
--   Project percentile_5, count_6
--     Join cross
--       Aggregate by [] of [count_6 = count(*)]
--         Project k_1, kind_2, v_3, x_4, unit = (k_1 % 4)
--           Scan event [k, kind, v, x]
--       Project percentile_5
--         Aggregate by [] of [percentile_5 = percentile(value_thin1, 0.5)]
--           Project value_thin1, unit
--             Filter ((cast(place_rows1 as bigint) % 2) = ((unit * 1) % 2))
--               Window place_rows1 = row_number() over (by unit order value_thin1 asc)
--                 Project value_thin1 = x_4, unit
--                   Filter isnotnull(x_4)
--                     Filter (kind_2 = 1)
--                       Project k_1, kind_2, v_3, x_4, unit = (k_1 % 4)
--                         Scan event [k, kind, v, x]

-- name: two_values
-- step: 2
select percentile(x, 0.5) a, percentile(v, 0.5) b from event
-- expected:
-- None
