-- An alert rule of an account. settings and state are JSON objects; secrets in settings are encrypted. checked_at is the time of the last check: of
-- the nodes that want to check a rule, one does.
CREATE TABLE alert_rule (
  id          TEXT PRIMARY KEY,
  account_id  TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
  settings    TEXT NOT NULL,
  state       TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  modified_at BIGINT NOT NULL,
  checked_at  BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX alert_rule_by_account ON alert_rule (account_id, id);

-- A notice to one receiver. next_at is null when it was delivered, or given up.
CREATE TABLE alert_notice (
  id           TEXT PRIMARY KEY,
  account_id   TEXT NOT NULL,
  rule_id      TEXT NOT NULL REFERENCES alert_rule (id) ON DELETE CASCADE,
  receiver     INTEGER NOT NULL,
  kind         TEXT NOT NULL,
  body         TEXT NOT NULL,
  attempts     INTEGER NOT NULL,
  next_at      BIGINT,
  delivered_at BIGINT,
  problem      TEXT,
  created_at   BIGINT NOT NULL
);
CREATE INDEX alert_notice_by_time ON alert_notice (next_at);
CREATE INDEX alert_notice_by_rule ON alert_notice (rule_id, id);

-- What a node has measured for a rule in one slot of its window. version is the rule's modified_at; durations is a JSON array, the histogram.
CREATE TABLE alert_measure (
  rule_id   TEXT NOT NULL REFERENCES alert_rule (id) ON DELETE CASCADE,
  version   BIGINT NOT NULL,
  slot      BIGINT NOT NULL,
  node      TEXT NOT NULL,
  count     BIGINT NOT NULL,
  failed    BIGINT NOT NULL,
  amount    DOUBLE PRECISION NOT NULL,
  durations TEXT NOT NULL,
  PRIMARY KEY (rule_id, version, slot, node)
);
