-- An alert rule of an account. settings and state are JSON objects; secrets in settings are encrypted.
CREATE TABLE alert_rule (
  id          TEXT PRIMARY KEY,
  account_id  TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
  settings    TEXT NOT NULL,
  state       TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  modified_at BIGINT NOT NULL
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
