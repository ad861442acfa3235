-- name: ratio_is_not_rounded
select c / 3 r, s / c m, s + 1 t from (select count(*) c, sum(v) s from event group by kind) t
-- expected:
-- Project r_9 = average_of(c_7, 3.0), m_10 = average_of(s_8, c_7), t_11 = (s_8 + 1.0)
--   Input rows

-- name: casts_to_numbers_vanish
select cast(c as int) i, cast(c as double) d, cast(c as decimal(20, 2)) e from (select count(*) c from event group by kind) t
-- expected:
-- Project i_7 = c_6, d_8 = c_6, e_9 = c_6
--   Input rows

-- name: tests
select c > 10 a, case when s > 3.5 then c else 0 end b, coalesce(s, c) d from (select count(*) c, sum(v) s from event group by kind) t
-- expected:
-- Project a_9 = (c_7 > 10.0), b_10 = case((s_8 > 3.5), c_7, 0.0), d_11 = coalesce(s_8, c_7)
--   Input rows

-- name: remainder
select c % 2 m from (select count(*) c from event group by kind) t
-- expected:
-- '%' of an estimate has no meaning before it is exact
