-- name: key_of_a_filtered_table
select e.k, k.label from event e join kind k on e.kind = k.id where k.label <> 'one'
-- expected:
-- waits on the left:
--   Join anti on (kind_2 = id_5)
--     Scan event [k, kind]
--     Scan kind [id]

-- name: no_key
select e.k, v.w from event e join visit v on e.k = v.vk
-- expected:
-- nothing waits

-- name: a_join_waits
select e.k, v.w, k.label from event e join visit v on e.k = v.vk join kind k on e.kind = k.id
-- expected:
-- waits on the left:
--   Join anti on (kind_2 = id_7)
--     Join inner on (k_1 = vk_5)
--       Scan event [k, kind]
--       Scan visit [vk, w]
--     Scan kind [id]

-- name: an_outer_join_does_not_wait
select e.k, k.label from event e left join kind k on e.kind = k.id
-- expected:
-- nothing waits
