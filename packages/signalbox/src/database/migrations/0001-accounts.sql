CREATE TABLE account (
  id         TEXT PRIMARY KEY,
  name       TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

-- Only the SHA-256 of a token is kept; suffix is its last four characters, for listings.
CREATE TABLE token (
  id          TEXT PRIMARY KEY,
  account_id  TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
  name        TEXT NOT NULL,
  hash        TEXT NOT NULL UNIQUE,
  suffix      TEXT NOT NULL,
  permissions TEXT NOT NULL,
  gateway_id  TEXT,
  created_at  BIGINT NOT NULL,
  expires_at  BIGINT,
  last_used_at BIGINT
);

CREATE INDEX token_by_account ON token (account_id, id);
