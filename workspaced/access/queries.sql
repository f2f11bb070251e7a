-- Keys, their secrets, and grants.

-- name: insert_key
INSERT INTO api_key (id, name, principal, scopes, last_four, created_at, expires_at)
VALUES (:id, :name, :principal, :scopes, :last_four, :now, :expires_at)

-- name: insert_secret
INSERT INTO api_key_secret (key_id, sha256, valid_until) VALUES (:id, :sha256, NULL)

-- name: insert_grant
-- A grant that is there already stays as it is.
INSERT INTO access_grant (principal, workspace_id, role, created_at) VALUES (:principal, :workspace_id, :role, :now)
ON CONFLICT (principal, workspace_id, role) DO NOTHING

-- name: key_for_authentication
SELECT name, principal, scopes, expires_at, last_used_at, revoked_at FROM api_key WHERE id = :id

-- name: secrets_of_key
SELECT sha256, valid_until FROM api_key_secret WHERE key_id = :id

-- name: grants_of_principal
SELECT workspace_id, role FROM access_grant WHERE principal = :principal

-- name: list_keys
SELECT id, name, principal, last_four, created_at, expires_at, last_used_at, revoked_at
FROM api_key ORDER BY created_at, id

-- name: keys_named
-- A name stands for every key that bears it and is not revoked.
SELECT id FROM api_key WHERE (id = :name OR name = :name) AND revoked_at IS NULL ORDER BY id

-- name: revoke_key
UPDATE api_key SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL

-- name: end_secrets
-- The secrets so far end with the overlap; one that ends sooner keeps its end.
UPDATE api_key_secret SET valid_until = :until WHERE key_id = :id AND (valid_until IS NULL OR valid_until > :until)

-- name: set_last_four
UPDATE api_key SET last_four = :last_four WHERE id = :id

-- name: touch_key
UPDATE api_key SET last_used_at = :now WHERE id = :id
