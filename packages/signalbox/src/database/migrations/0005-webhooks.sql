-- Which entity an instance name stands for, for names that two entities could share (a/b-c and a-b/c are both a-b-c).
CREATE TABLE webhook_entity (
  agent  TEXT NOT NULL,
  name   TEXT NOT NULL,
  entity TEXT NOT NULL,
  PRIMARY KEY (agent, name)
);

-- The newest verified deliveries, for people to look at and to replay. What an agent keeps is in its own database.
CREATE TABLE webhook_delivery (
  id           TEXT PRIMARY KEY,
  account_id   TEXT NOT NULL,
  source       TEXT NOT NULL,
  status       TEXT NOT NULL,
  reason       TEXT,
  http_status  BIGINT NOT NULL,
  received_at  BIGINT NOT NULL,
  duration_ms  BIGINT NOT NULL,
  delivery_id  TEXT NOT NULL,
  type         TEXT NOT NULL,
  title        TEXT NOT NULL,
  agent        TEXT NOT NULL,
  instance     TEXT NOT NULL,
  content_type TEXT,
  headers      TEXT NOT NULL,
  body_bytes   BIGINT NOT NULL,
  body         BLOB
);

CREATE INDEX webhook_delivery_by_account ON webhook_delivery (account_id, id);
