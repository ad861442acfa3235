-- name: keys
select kind, sum(v) s, avg(x) a from event where x > 3 group by kind
-- expected:
-- Aggregate by [] of [keys = count(*)]
--   Aggregate by [kind_2] of []
--     Filter (x_4 > 3.0)
--       Scan event [kind, x]

-- name: keys_of_a_join
select z, kind, count(*) c from event join other on k = ok group by z, kind
-- expected:
-- Aggregate by [] of [keys = count(*)]
--   Aggregate by [z_6, kind_2] of []
--     Join inner on (k_1 = ok_5)
--       Scan event [k, kind]
--       Scan other [ok, z]

-- name: without_keys
select sum(v) s from event
-- expected:
-- Aggregate by [] of [keys = count(*)]
--   Aggregate by [] of []
--     Scan event []
