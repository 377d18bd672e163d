-- Amounts of money that count against limits, in millionths of a US dollar, in one slot of a window. The owner is an account, a gateway (with
-- the time of its creation, so that a later gateway of the same name starts at nothing) or a token. Replaces gateway_spend.
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
INSERT INTO limit_amount (account_id, owner, bucket, slot_start, ends_at, amount)
  SELECT s.account_id, 'gateway ' || s.gateway_id || ' ' || g.created_at, s.bucket, s.slot_start, s.ends_at, s.micro_dollars
  FROM gateway_spend s JOIN gateway g ON g.account_id = s.account_id AND g.id = s.gateway_id;
DROP TABLE gateway_spend;

-- How far the journal of a data folder is contained in limit_amount.
CREATE TABLE limit_journal (
  id       TEXT PRIMARY KEY,
  sequence BIGINT NOT NULL,
  position BIGINT NOT NULL
);

-- Settings of the gateway that belong to an account: `prices` and `limits`, each one JSON object.
CREATE TABLE gateway_account_setting (
  account_id  TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
  name        TEXT NOT NULL,
  value       TEXT NOT NULL,
  modified_at BIGINT NOT NULL,
  PRIMARY KEY (account_id, name)
);
