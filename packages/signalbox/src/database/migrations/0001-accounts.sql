CREATE TABLE account (
  id         TEXT PRIMARY KEY,
  name       TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

-- Only the SHA-256 of a token is kept; suffix is its last four characters, for listings.
-- policy makes a token a virtual key: one JSON object (budgets, rate limits, models, providers, routes, metadata, owner, tags), checked by the
-- code that writes it and kept in memory. owner repeats the policy's owner, for listings by owner.
-- previous_hash: the secret before the last rotation, valid until previous_ends_at.
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
  last_used_at BIGINT,
  policy      TEXT,
  owner       TEXT,
  disabled    BIGINT NOT NULL DEFAULT 0,
  modified_at BIGINT,
  previous_hash TEXT,
  previous_ends_at BIGINT
);

CREATE INDEX token_by_account ON token (account_id, id);
CREATE INDEX token_by_owner ON token (account_id, owner, id) WHERE owner IS NOT NULL;

-- Only the SHA-256 of a session's cookie is kept. token_id is null for a session of the root token.
CREATE TABLE dashboard_session (
  hash       TEXT PRIMARY KEY,
  token_id   TEXT,
  account_id TEXT,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);

-- One-time codes of login links: a link that one node made works at every node. Only the SHA-256 of a code is kept.
CREATE TABLE login_code (
  hash       TEXT PRIMARY KEY,
  expires_at BIGINT NOT NULL
);

-- What happened once and must not happen again. `default_gateway`: the account `default` got its gateway at the first start; if an operator
-- deletes it, it stays deleted.
CREATE TABLE first_start (
  name    TEXT PRIMARY KEY,
  done_at BIGINT NOT NULL
);
