-- The audit log: one row for each management write, refused ones included. Rows are only added; retention deletes the oldest.
-- The rows of an account form a chain: `entry` contains the hash of the row before it, and `hash` is the SHA-256 of `entry`.
-- `account_id` is empty for writes that belong to no account.
-- A table with row numbers: a row is larger than a quarter of a page, so without row numbers each row would need an overflow page of its own.
CREATE TABLE audit_entry (
  account_id TEXT NOT NULL,
  seq BIGINT NOT NULL,
  at BIGINT NOT NULL,
  id TEXT NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  outcome TEXT NOT NULL,
  resource_type TEXT NOT NULL,
  resource_id TEXT NOT NULL,
  request_id TEXT NOT NULL,
  entry TEXT NOT NULL,
  hash TEXT NOT NULL,
  PRIMARY KEY (account_id, seq)
);

CREATE INDEX audit_entry_time ON audit_entry (account_id, at);

-- Written in the transaction of a change whose entry is not complete yet. It is replaced by the entry before the client is answered; after a
-- crash, by an entry without an outcome.
CREATE TABLE audit_claim (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  at BIGINT NOT NULL,
  facts TEXT NOT NULL
);
