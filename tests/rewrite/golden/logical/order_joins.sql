-- name: largest_stays
select label, w from kind, visit, event where kind.id = event.kind and k = vk and w > 3
-- expected:
-- Project label_9 = label_2, w_10 = w_4
--   Project id_1, label_2, vk_3, w_4, k_5, kind_6
--     Join inner on (id_1 = kind_6)
--       Join inner on (k_5 = vk_3)
--         Scan event [k, kind]
--         Filter (w_4 > 3)
--           Scan visit [vk, w]
--       Scan kind [id, label]

-- name: connected_by_the_last
select z, w, label from visit, kind, other, event where k = vk and k = ok and event.kind = kind.id
-- expected:
-- Project z_11 = z_6, w_12 = w_2, label_13 = label_4
--   Project vk_1, w_2, id_3, label_4, ok_5, z_6, k_7, kind_8
--     Join inner on (k_7 = ok_5)
--       Join inner on (k_7 = vk_1)
--         Join inner on (kind_8 = id_3)
--           Scan event [k, kind]
--           Scan kind [id, label]
--         Scan visit [vk, w]
--       Scan other [ok, z]

-- name: equality_before_other_tests
select count(*) as n from event, other, visit where k > ok and k = vk
-- expected:
-- Project n_10 = count_9
--   Aggregate by [] of [count_9 = count(*)]
--     Project k_1, ok_5, vk_7
--       Join inner on (k_1 > ok_5)
--         Join inner on (k_1 = vk_7)
--           Scan event [k]
--           Scan visit [vk]
--         Scan other [ok]

-- name: two_are_left_alone
select z from other, event where k = ok
-- expected:
-- Project z_7 = z_2
--   Join inner on (k_3 = ok_1)
--     Scan other [ok, z]
--     Scan event [k]

-- name: outer_joins_stay
select w, label from event join visit on k = vk join other on ok = vk left join kind on event.kind = id
-- expected:
-- Project w_11 = w_6, label_12 = label_10
--   Join left on (kind_2 = id_9)
--     Project k_1, kind_2, vk_5, w_6, ok_7
--       Join inner on (ok_7 = vk_5)
--         Join inner on (k_1 = vk_5)
--           Scan event [k, kind]
--           Scan visit [vk, w]
--         Scan other [ok]
--     Scan kind [id, label]
