-- What happened once and must not happen again. `default_gateway`: the account `default` got its gateway at the first start; if an operator
-- deletes it, it stays deleted. A database that has the account is past its first start.
CREATE TABLE first_start (
  name    TEXT PRIMARY KEY,
  done_at BIGINT NOT NULL
);
INSERT INTO first_start (name, done_at) SELECT 'default_gateway', created_at FROM account WHERE id = 'default';

-- Gateways whose row is gone and whose tokens, calls and tags may not be yet; written together with the row's deletion.
CREATE TABLE gateway_deletion (
  account_id TEXT NOT NULL,
  gateway_id TEXT NOT NULL,
  deleted_at BIGINT NOT NULL,
  PRIMARY KEY (account_id, gateway_id)
);
