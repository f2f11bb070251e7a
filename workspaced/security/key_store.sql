-- Keys, their secrets, and grants.

-- name: insert_key
INSERT INTO api_key (id, name, principal, scopes, guest, last_four, created_at, expires_at)
VALUES (:id, :name, :principal, :scopes, :guest, :last_four, :now, :expires_at)

-- name: insert_secret
INSERT INTO api_key_secret (key_id, sha256, valid_until) VALUES (:id, :sha256, NULL)

-- name: insert_grant
-- An existing grant is not changed.
INSERT INTO access_grant (principal, workspace_id, role, created_at) VALUES (:principal, :workspace_id, :role, :now)
ON CONFLICT (principal, workspace_id, role) DO NOTHING

-- name: workspace_is_there
SELECT 1 FROM workspace WHERE id = :workspace_id AND deleted_at IS NULL

-- name: purge_grants
DELETE FROM access_grant WHERE workspace_id = (SELECT id FROM workspace WHERE number = :workspace)

-- name: key_for_authentication
SELECT principal, scopes, guest, expires_at, last_used_at, revoked_at FROM api_key WHERE id = :id

-- name: secrets_of_key
SELECT sha256, valid_until FROM api_key_secret WHERE key_id = :id

-- name: grants_of_principal
-- A grant on a deleted workspace has no effect, so the caller can't distinguish it from a missing workspace (contract G15).
SELECT g.workspace_id, g.role FROM access_grant g LEFT JOIN workspace w ON w.id = g.workspace_id
WHERE g.principal = :principal AND (g.workspace_id = '' OR (w.id IS NOT NULL AND w.deleted_at IS NULL))

-- name: grants_of_guest
-- A guest's grant on all workspaces applies only to workspaces that admit guests (contract A7).
SELECT w.id, g.role FROM access_grant g JOIN workspace w ON g.workspace_id IN (w.id, '')
WHERE g.principal = :principal AND w.deleted_at IS NULL AND w.guests_enabled = 1

-- name: list_keys
SELECT id, name, principal, last_four, created_at, expires_at, last_used_at, revoked_at, scopes, guest
FROM api_key ORDER BY created_at, id

-- name: find_key
SELECT id, name, principal, last_four, created_at, expires_at, last_used_at, revoked_at, scopes, guest
FROM api_key WHERE id = :id

-- name: all_grants
SELECT workspace_id, role FROM access_grant WHERE principal = :principal ORDER BY workspace_id, role

-- name: keys_named
-- :name is the id or the name of a key. Several keys may have the same name.
SELECT id, name, principal, last_four, created_at, expires_at, last_used_at, revoked_at, scopes, guest
FROM api_key WHERE (id = :name OR name = :name) AND revoked_at IS NULL ORDER BY id

-- name: revoke_key
UPDATE api_key SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL

-- name: end_secrets
-- The present secrets expire after the overlap. A secret that expires sooner keeps its expiry.
UPDATE api_key_secret SET valid_until = :until WHERE key_id = :id AND (valid_until IS NULL OR valid_until > :until)

-- name: drop_ended_secrets
DELETE FROM api_key_secret WHERE key_id = :id AND valid_until <= :now

-- name: set_last_four
UPDATE api_key SET last_four = :last_four WHERE id = :id

-- name: touch_key
UPDATE api_key SET last_used_at = :now WHERE id = :id
