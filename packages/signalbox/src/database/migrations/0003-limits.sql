-- Amounts of money that count against limits, in millionths of a US dollar, in one slot of a window. The owner is an account, a gateway (with
-- the time of its creation, so that a later gateway of the same name starts at nothing) or a token.
CREATE TABLE limit_amount (
  account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
  owner      TEXT NOT NULL,
  bucket     TEXT NOT NULL,
  slot_start BIGINT NOT NULL,
  ends_at    BIGINT NOT NULL,
  amount     BIGINT NOT NULL,
  PRIMARY KEY (account_id, owner, bucket, slot_start)
);
CREATE INDEX limit_amount_by_end ON limit_amount (ends_at);

-- How far the journal of a data folder is contained in limit_amount.
CREATE TABLE limit_journal (
  id       TEXT PRIMARY KEY,
  sequence BIGINT NOT NULL,
  position BIGINT NOT NULL
);

-- Amounts that count against limits, for nodes that share a PostgreSQL database. One row for each bucket of a rule: `used` has the amount of each
-- slot that counts, `held` what running calls have reserved on all nodes, `spare` what nodes have taken and not used yet. `loans` has the part of
-- each node: [held, expected, spare, expected of spare, number of the last statement], by incarnation. Not used with SQLite.
CREATE TABLE limit_share (
  id             BIGSERIAL PRIMARY KEY,
  account_id     TEXT NOT NULL,
  owner          TEXT NOT NULL,
  bucket         TEXT NOT NULL,
  kind           TEXT NOT NULL,
  window_key     TEXT NOT NULL,
  earlier_window TEXT NOT NULL DEFAULT '',
  window_since   BIGINT NOT NULL DEFAULT 0,
  last_slot      BIGINT NOT NULL DEFAULT 0,
  ends_at        BIGINT NOT NULL,
  used           JSONB NOT NULL DEFAULT '{}',
  held           BIGINT NOT NULL DEFAULT 0,
  spare          BIGINT NOT NULL DEFAULT 0,
  loans          JSONB NOT NULL DEFAULT '{}',
  tight_until    BIGINT NOT NULL DEFAULT 0,
  UNIQUE (account_id, owner, bucket)
);
