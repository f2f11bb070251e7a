-- What is chosen at the first start and holds from then on.

-- name: choose
INSERT INTO fixed_setting (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING

-- name: read
SELECT value FROM fixed_setting WHERE name = :name

-- name: rewrite
UPDATE fixed_setting SET value = :value WHERE name = :name
