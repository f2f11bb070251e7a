-- Settings that the first start fixes for the life of the data.

-- name: choose
INSERT INTO fixed_setting (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING

-- name: read
SELECT value FROM fixed_setting WHERE name = :name

-- name: replace
UPDATE fixed_setting SET value = :value WHERE name = :name AND value = :before
