-- name: by_keys
select kind, count(*) c, count(v) n, sum(v) s, min(x) lo, max(x) hi from event group by kind
-- expected:
-- partial:
--   Aggregate by [kind_2] of [part_split1 = count(*), part_split3 = count(v_3), part_split5 = sum(v_3), part_split7 = min(x_4), part_split9 = max(x_4)]
--     Scan event [kind, v, x]
-- merged:
--   Project kind_2, count_5 = whole_split2, count_6 = whole_split4, sum_7 = whole_split6, min_8 = whole_split8, max_9 = whole_split10
--     Aggregate by [kind_2] of [whole_split2 = sum(part_split1), whole_split4 = sum(part_split3), whole_split6 = sum(part_split5), whole_split8 = min(part_split7), whole_split10 = max(part_split9)]
--       Input parts

-- name: without_keys
select count(*) c, count_if(v > 3) n, sum(v) s, bool_and(v > 1) a from event
-- expected:
-- partial:
--   Aggregate by [] of [part_split1 = count(*), part_split3 = count_if((v_3 > 3.0)), part_split5 = sum(v_3), part_split7 = bool_and((v_3 > 1.0))]
--     Scan event [v]
-- merged:
--   Project count_5 = coalesce(whole_split2, 0), count_if_6 = coalesce(whole_split4, 0), sum_7 = whole_split6, bool_and_8 = whole_split8
--     Aggregate by [] of [whole_split2 = sum(part_split1), whole_split4 = sum(part_split3), whole_split6 = sum(part_split5), whole_split8 = bool_and(part_split7)]
--       Input parts

-- name: average
select kind, avg(v) a, avg(x) b, avg(k) c from event group by kind
-- expected:
-- partial:
--   Aggregate by [kind_2] of [part_split1 = sum(v_3), part_split3 = count(v_3), part_split5 = sum(x_4), part_split7 = count(x_4), part_split9 = sum(k_1), part_split11 = count(k_1)]
--     Scan event [k, kind, v, x]
-- merged:
--   Project kind_2, avg_5 = average_of(whole_split2, whole_split4), avg_6 = average_of(whole_split6, whole_split8), avg_7 = average_of(whole_split10, whole_split12)
--     Aggregate by [kind_2] of [whole_split2 = sum(part_split1), whole_split4 = sum(part_split3), whole_split6 = sum(part_split5), whole_split8 = sum(part_split7), whole_split10 = sum(part_split9), whole_split12 = sum(part_split11)]
--       Input parts

-- name: filtered
select kind, sum(v) filter (where x > 40) s, count(*) filter (where x > 40) n from event group by kind
-- expected:
-- partial:
--   Aggregate by [kind_2] of [part_split1 = sum(v_3) filter (x_4 > 40.0), part_split3 = count(*) filter (x_4 > 40.0)]
--     Scan event [kind, v, x]
-- merged:
--   Project kind_2, sum_5 = whole_split2, count_6 = whole_split4
--     Aggregate by [kind_2] of [whole_split2 = sum(part_split1), whole_split4 = sum(part_split3)]
--       Input parts

-- name: grouping_sets
select kind, k % 2 p, count(*) c from event group by cube(kind, k % 2)
-- expected:
-- partial:
--   Aggregate by [kind_6 = kind_2, key_7 = value_9] of [part_split1 = count(*)] grouping sets [(0, 1), (0,), (1,), ()]
--     Project kind_2, value_9 = (k_1 % 2)
--       Scan event [k, kind]
-- merged:
--   Project kind_6, key_7, count_8 = whole_split2, grouping_id_5
--     Aggregate by [kind_6, key_7, grouping_id_5] of [whole_split2 = sum(part_split1)]
--       Input parts

-- name: distinct_of_extremes
select kind, max(distinct v) m from event group by kind
-- expected:
-- partial:
--   Aggregate by [kind_2] of [part_split1 = max(v_3)]
--     Scan event [kind, v]
-- merged:
--   Project kind_2, max_5 = whole_split2
--     Aggregate by [kind_2] of [whole_split2 = max(part_split1)]
--       Input parts

-- name: no_merge
select kind, count(distinct v) d from event group by kind
-- expected:
-- None
