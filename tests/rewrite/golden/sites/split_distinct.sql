-- name: count
select count(distinct kind) d from event
-- expected:
-- Project count_5
--   Aggregate by [] of [count_5 = count(value_split1)]
--     Aggregate by [value_split1 = kind_2] of []
--       Scan event [kind]

-- name: by_key_beside_others
select kind, count(distinct k) d, sum(distinct k) t, count(*) c, avg(x) a from event group by kind
-- expected:
-- Project kind_2, count_5, sum_6, count_7 = whole_split3, avg_8 = average_of(whole_split5, whole_split7)
--   Aggregate by [kind_2] of [whole_split3 = sum(part_split2), whole_split5 = sum(part_split4), whole_split7 = sum(part_split6), count_5 = count(value_split1), sum_6 = sum(value_split1)]
--     Aggregate by [kind_2, value_split1 = k_1] of [part_split2 = count(*), part_split4 = sum(x_4), part_split6 = count(x_4)]
--       Scan event [k, kind, x]

-- name: two_different_values
select count(distinct kind) d, count(distinct k) e from event
-- expected:
-- None

-- name: filtered
select count(distinct kind) filter (where k > 3) d from event
-- expected:
-- None
