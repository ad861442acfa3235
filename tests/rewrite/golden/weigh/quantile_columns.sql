-- name: median
select percentile(y, 0.5) m from noise where g < 3
-- expected:
-- m_4 is quantile 0.5:
--   Project unit_group = g_1_unit, value = value_stream1
--     Filter isnotnull(value_stream1)
--       Input stage_1

-- name: by_group
select g, percentile(y, 0.25) a, percentile(y, 0.75) b, count(*) c from noise group by g
-- expected:
-- a_7 is quantile 0.25:
--   Project key_0 = g_1, unit_group = g_1_unit, value = y_2
--     Filter isnotnull(y_2)
--       Input stage_1
-- b_8 is quantile 0.75:
--   Project key_0 = g_1, unit_group = g_1_unit, value = y_2
--     Filter isnotnull(y_2)
--       Input stage_1

-- name: changed_after
select percentile(y, 0.5) + 1 m from noise
-- expected:
-- None
