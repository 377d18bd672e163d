-- One-time codes of login links: a link that one node made works at every node. Only the SHA-256 of a code is kept.
CREATE TABLE login_code (
  hash       TEXT PRIMARY KEY,
  expires_at BIGINT NOT NULL
);

-- Part of the keys of cached responses: a change of the gateway makes them unreachable on every node.
ALTER TABLE gateway ADD COLUMN cache_generation BIGINT NOT NULL DEFAULT 0;
