-- Only the SHA-256 of a session's cookie is kept. token_id is null for a session of the root token.
CREATE TABLE dashboard_session (
  hash       TEXT PRIMARY KEY,
  token_id   TEXT,
  account_id TEXT,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
