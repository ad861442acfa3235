-- name: the_query_itself
-- view: select kind, sum(v) s from event group by kind having sum(v) > 3 order by s
select kind, sum(v) as total from event group by kind having sum(v) > 3 order by total
-- expected:
-- Project kind_6 = kind_used5, total_7 = s_used6
--   Sort s_used6 asc
--     Project kind_used5 = kind_used1, s_used6 = s_used2
--       Project kind_used1, s_used2
--         Filter (s_used2 > 3.0)
--           Scan the view [kind, s]

-- name: rows_with_more_conditions
-- view: select k, kind, v from event where v > 1
select kind, v from event where v > 1 and k > 4
-- expected:
-- Project kind_5 = kind_used2, v_6 = v_used3
--   Filter (4 < k_used1)
--     Scan the view [k, kind, v]

-- name: rows_with_a_narrower_range
-- view: select k, v from event where k > 4
select v from event where k > 9
-- expected:
-- Project v_5 = v_used2
--   Filter (9 < k_used1)
--     Scan the view [k, v]

-- name: rows_with_a_wider_range
-- view: select k, v from event where k > 9
select v from event where k > 4
-- expected:
-- None

-- name: a_column_that_is_not_kept
-- view: select k, v from event
select x from event
-- expected:
-- None

-- name: an_expression_that_is_kept
-- view: select k, v * 2 as twice from event
select v * 2 + 1 as more from event where k = 3
-- expected:
-- Project more_5 = (twice_used2 + 1)
--   Filter (k_used1 = 3)
--     Scan the view [k, twice]

-- name: fewer_keys
-- view: select kind, k, count(*) c, sum(v) s, min(v) lo, avg(v) a from event group by kind, k
select kind, sum(v) as s, avg(v) as a, min(v) as lo, count(*) as n from event where k < 9 group by kind
-- expected:
-- Project kind_9 = kind_2, s_10 = sum_5, a_11 = avg_6, lo_12 = min_7, n_13 = count_8
--   Project kind_2, sum_5, avg_6 = average_of(sum_5, part_used7), min_7, count_8
--     Project kind_2, sum_5 = merged_used8, min_7 = merged_used9, count_8 = merged_used10, part_used7 = merged_used11
--       Aggregate by [kind_2 = kind_used1] of [merged_used8 = sum(s_used4), merged_used9 = min(lo_used5), merged_used10 = sum(c_used3), merged_used11 = sum(_count_used6)]
--         Filter (k_used2 < 9)
--           Scan the view [kind, k, c, s, lo, _count]

-- name: no_keys
-- view: select kind, count(*) c, sum(v) s from event group by kind
select sum(v) as s, count(*) as n from event
-- expected:
-- Project s_7 = sum_5, n_8 = count_6
--   Project sum_5, count_6
--     Project sum_5 = merged_used6, count_6 = coalesce(merged_used7, 0)
--       Aggregate by [] of [merged_used6 = sum(s_used3), merged_used7 = sum(c_used2)]
--         Scan the view [c, s]

-- name: no_keys_and_no_rows
-- view: select kind, count(*) c, sum(v) s from event group by kind
select sum(v) as s, count(*) as n from event where kind = 77
-- expected:
-- Project s_7 = sum_5, n_8 = count_6
--   Project sum_5, count_6
--     Project sum_5 = merged_used6, count_6 = coalesce(merged_used7, 0)
--       Aggregate by [] of [merged_used6 = sum(s_used3), merged_used7 = sum(c_used2)]
--         Filter (kind_used1 = 77)
--           Scan the view [kind, c, s]

-- name: a_filter_on_what_is_summed
-- view: select kind, sum(v) s from event group by kind
select kind, sum(v) as s from event where v > 3 group by kind
-- expected:
-- None

-- name: doubles_in_the_same_groups
-- view: select kind, sum(x) s, count(distinct k) d from event group by kind
select kind, count(distinct k) as d, sum(x) as s from event where kind > 0 group by kind
-- expected:
-- Project kind_7 = kind_2, d_8 = count_5, s_9 = sum_6
--   Project kind_2 = kind_used1, count_5 = d_used3, sum_6 = s_used2
--     Filter (0 < kind_used1)
--       Scan the view [kind, s, d]

-- name: doubles_in_fewer_groups
-- view: select kind, k, sum(x) s from event group by kind, k
select kind, sum(x) as s from event group by kind
-- expected:
-- None

-- name: extremes_of_keys
-- view: select kind, k, count(*) c from event group by kind, k
select kind, max(k) as hi from event group by kind
-- expected:
-- Project kind_6 = kind_2, hi_7 = max_5
--   Project kind_2, max_5
--     Project kind_2, max_5 = merged_used5
--       Aggregate by [kind_2 = kind_used1] of [merged_used5 = max(k_used2)]
--         Scan the view [kind, k]

-- name: joins
-- view: select label, k, sum(v) s from event join kind on kind.id = event.kind group by label, k
select label, sum(v) as s from kind, event where event.kind = id and k > 3 group by label
-- expected:
-- Project label_8 = label_2, s_9 = sum_7
--   Project label_2, sum_7
--     Project label_2, sum_7 = merged_used8
--       Aggregate by [label_2 = label_used1] of [merged_used8 = sum(s_used3)]
--         Filter (3 < k_used2)
--           Scan the view [label, k, s]

-- name: more_joins
-- view: select k, kind, sum(v) s, count(*) c from event group by k, kind
select label, sum(v) as s, count(*) as n from event join kind on event.kind = kind.id group by label
-- expected:
-- Project label_9 = label_6, s_10 = sum_7, n_11 = count_8
--   Project label_6, sum_7, count_8
--     Project label_6, sum_7 = merged_used7, count_8 = merged_used8
--       Aggregate by [label_6] of [merged_used7 = sum(s_used3), merged_used8 = sum(c_used4)]
--         Join inner on (kind_used2 = id_5)
--           Scan the view [kind, s, c]
--           Scan kind [id, label]

-- name: more_joins_of_rows
-- view: select k, v, kind from event where v > 2
select label, v from event join kind on event.kind = kind.id where v > 2 and label <> 'two'
-- expected:
-- Project label_7 = label_6, v_8 = v_used2
--   Join inner on (kind_used3 = id_5)
--     Scan the view [v, kind]
--     Filter (label_6 <> 'two')
--       Scan kind [id, label]

-- name: equal_columns
-- view: select vk, w, v from event join visit on k = vk
select k, w from visit join event on vk = k where v > 3
-- expected:
-- Project k_7 = vk_used1, w_8 = w_used2
--   Filter (3.0 < v_used3)
--     Scan the view [vk, w, v]

-- name: joins_that_the_query_lacks
-- view: select k, v from event join visit on k = vk
select v from event
-- expected:
-- None

-- name: the_same_table_twice
-- view: select a.k, a.v as av, b.v as bv from event a join event b on a.k = b.k where a.kind = 1
select q.v as x, p.v as y from event p, event q where q.kind = 1 and p.k = q.k
-- expected:
-- Project x_9 = av_used2, y_10 = bv_used3
--   Scan the view [av, bv]

-- name: inside_a_query
-- view: select kind, count(*) c from event group by kind
select label from kind where id in (select kind from event group by kind having count(*) > 14)
-- expected:
-- Project label_9 = label_2
--   Join semi on (id_1 = kind_8)
--     Scan kind [id, label]
--     Project kind_8 = kind_4
--       Project kind_4
--         Project kind_4
--           Filter (merged_used3 > 14)
--             Aggregate by [kind_4 = kind_used1] of [merged_used3 = sum(c_used2)]
--               Scan the view [kind, c]

-- name: outer_joins
-- view: select label, v from kind left join event on id = event.kind
select label, v from kind left join event on id = event.kind
-- expected:
-- Project label_7 = label_used1, v_8 = v_used2
--   Scan the view [label, v]

-- name: groups_of_joined_rows
-- view: select label, v from kind join event on id = event.kind
select label, sum(v) as s from kind join event on id = event.kind group by label
-- expected:
-- Project label_8 = label_2, s_9 = sum_7
--   Aggregate by [label_2] of [sum_7 = sum(v_5)]
--     Project label_2 = label_used1, v_5 = v_used2
--       Scan the view [label, v]

-- name: joined_rows_counted
-- view: select label from kind join event on id = event.kind
select count(*) as n from kind join event on id = event.kind
-- expected:
-- Project n_8 = count_7
--   Aggregate by [] of [count_7 = count(*)]
--     Project
--       Scan the view []

-- name: groups_of_rows_joined_with_more
-- view: select event.k, v from kind join event on id = event.kind
select a.k, sum(b.v) as s from kind join event b on id = b.kind join event a on a.k = b.k group by a.k
-- expected:
-- Project k_12 = k_7, s_13 = sum_11
--   Aggregate by [k_7] of [sum_11 = sum(v_5)]
--     Project v_5 = v_used2, k_7
--       Join inner on (k_used1 = k_7)
--         Scan the view [k, v]
--         Scan event [k]

-- name: not_null_is_demanded
-- view: select kind, count(*) c from event where v = v group by kind
select kind, count(*) as n from event group by kind
-- expected:
-- None

-- name: not_null_by_two_names
-- view: select a, b, k from (select v as a, v as b, k from event) as t where a = b
select k, v from event where k > 3
-- expected:
-- None

-- name: not_null_is_asked
-- view: select kind, count(*) c from event where v = v group by kind
select count(*) as n from event where v = v
-- expected:
-- Project n_6 = count_5
--   Project count_5
--     Project count_5 = coalesce(merged_used3, 0)
--       Aggregate by [] of [merged_used3 = sum(c_used2)]
--         Scan the view [c]

-- name: one_row_of_none_is_no_group
-- view: select count(*) c, sum(v) s from event where k > 1000
select year, count(*) as n from (select 2020 as year, v from event where k > 1000) as t group by year
-- expected:
-- None

-- name: one_row_of_none_beside_others
-- view: select count(*) c, sum(v) s from event where k > 1000
select count(*) as n, max(label) as l from event cross join kind where k > 1000
-- expected:
-- None

-- name: extremes_of_constants_over_no_rows
-- view: select count(*) c, sum(v) s from event where k > 1000
select max('v') as m, count(*) as n from event where k > 1000
-- expected:
-- None

-- name: one_row_of_none
-- view: select count(*) c, sum(v) s from event where k > 1000
select count(*) as n, sum(v) as s, avg(v) as a from event where k > 1000
-- expected:
-- Project n_8 = count_5, s_9 = sum_6, a_10 = avg_7
--   Project count_5, sum_6, avg_7 = average_of(sum_6, part_used4)
--     Project count_5 = coalesce(merged_used5, 0), sum_6 = merged_used6, part_used4 = coalesce(merged_used7, 0)
--       Aggregate by [] of [merged_used5 = sum(c_used1), merged_used6 = sum(s_used2), merged_used7 = sum(_count_used3)]
--         Scan the view [c, s, _count]

-- name: distinct_values_of_no_rows
-- view: select count(distinct kind) c from event
select count(distinct kind) as n from event where 1 = 0
-- expected:
-- None

-- name: zeros_of_either_sign
-- view: select coalesce(x, 0e0) as c from event
select coalesce(x, -0e0) as c from event
-- expected:
-- None

-- name: the_same_table_many_times
-- view: select label, id from kind where id > 0
select a.label from kind a join kind b on a.id = b.id join kind c on b.id = c.id join kind d on c.id = d.id join kind e on d.id = e.id join kind f on e.id = f.id join kind g on f.id = g.id join kind h on g.id = h.id join kind i on h.id = i.id join kind j on i.id = j.id join kind l on j.id = l.id join kind m on l.id = m.id where a.id > 0
-- expected:
-- Project label_25 = label_used1
--   Join inner on (id_21 = id_23)
--     Join inner on (id_21 = id_19)
--       Join inner on (id_17 = id_19)
--         Join inner on (id_15 = id_17)
--           Join inner on (id_13 = id_15)
--             Join inner on (id_11 = id_13)
--               Join inner on (id_9 = id_11)
--                 Join inner on (id_7 = id_9)
--                   Join inner on (id_5 = id_7)
--                     Join inner on (id_3 = id_5)
--                       Join inner on (id_used2 = id_3)
--                         Scan the view [label, id]
--                         Scan kind [id]
--                       Scan kind [id]
--                     Scan kind [id]
--                   Scan kind [id]
--                 Scan kind [id]
--               Scan kind [id]
--             Scan kind [id]
--           Scan kind [id]
--         Scan kind [id]
--       Scan kind [id]
--     Scan kind [id]

-- name: a_filter_that_tells_zeros_of_one_group_apart
-- view: select x, kind, count(*) c from event group by x, kind
select kind, count(*) as n from event where power(x, -1) < 0 group by kind
-- expected:
-- None

-- name: a_key_that_tells_zeros_of_one_group_apart
-- view: select x, count(*) c from event group by x
select power(x, -1) as p, count(*) as n from event group by power(x, -1)
-- expected:
-- None

-- name: an_extreme_that_tells_zeros_of_one_group_apart
-- view: select x, count(*) c from event group by x
select max(power(x, -1)) as p from event
-- expected:
-- None

-- name: filters_that_take_zeros_of_one_group_alike
-- view: select x, kind, count(*) c from event group by x, kind
select kind, count(*) as n from event where (cast(x as float) > 3 or x is null) and not isnan(x) group by kind
-- expected:
-- Project kind_6 = kind_2, n_7 = count_5
--   Project kind_2, count_5
--     Project kind_2, count_5 = merged_used4
--       Aggregate by [kind_2 = kind_used2] of [merged_used4 = sum(c_used3)]
--         Filter (((3.0 < cast(cast(x_used1 as float) as double)) or isnull(x_used1)) and not(isnan(x_used1)))
--           Scan the view [x, kind, c]

-- name: zeros_of_a_table_that_is_joined
-- view: select kind, count(*) c from event group by kind
select kind, count(*) as n from event join noise on kind = g and power(y, -1) > 0 group by kind
-- expected:
-- Project kind_8 = kind_2, n_9 = count_7
--   Project kind_2, count_7
--     Project kind_2, count_7 = merged_used3
--       Aggregate by [kind_2 = kind_used1] of [merged_used3 = sum(c_used2)]
--         Join inner on (cast(kind_used1 as bigint) = g_5)
--           Scan the view [kind, c]
--           Filter (0.0 < power(y_6, -1.0))
--             Scan noise [g, y]
