-- Sessions of the pages.

-- name: begin
INSERT INTO page_session (token, key_id, secret, created_at, expires_at)
VALUES (:token, :key_id, :secret, :now, :expires_at)

-- name: find
SELECT key_id, secret FROM page_session WHERE token = :token AND expires_at > :now

-- name: end
DELETE FROM page_session WHERE token = :token

-- name: drop_ended
DELETE FROM page_session WHERE expires_at <= :now
