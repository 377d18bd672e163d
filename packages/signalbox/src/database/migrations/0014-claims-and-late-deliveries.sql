-- Which entity owns an instance name, for every name that two entities could come to (a/b and a-b are both a-b; d/x written reversibly
-- is d_2fx, and so is d_2fx itself). Replaces webhook_entity, whose claims belong to the account default.
CREATE TABLE webhook_claim (
  account_id TEXT NOT NULL,
  agent      TEXT NOT NULL,
  name       TEXT NOT NULL,
  entity     TEXT NOT NULL,
  PRIMARY KEY (account_id, agent, name)
);

INSERT INTO webhook_claim (account_id, agent, name, entity)
SELECT 'default', agent, name, entity FROM webhook_entity;

DROP TABLE webhook_entity;

-- Deliveries that were answered 202 because their instance took too long. A row goes when the instance has handled the delivery.
-- next_attempt_at: null when all attempts have failed and a person has to decide.
CREATE TABLE webhook_late_delivery (
  id              TEXT PRIMARY KEY,
  account_id      TEXT NOT NULL,
  source          TEXT NOT NULL,
  agent           TEXT NOT NULL,
  instance        TEXT NOT NULL,
  delivery_id     TEXT NOT NULL,
  received_at     BIGINT NOT NULL,
  content_type    TEXT,
  headers         TEXT NOT NULL,
  body_bytes      BIGINT NOT NULL,
  body            BLOB NOT NULL,
  attempts        BIGINT NOT NULL,
  next_attempt_at BIGINT,
  last_error      TEXT
);

CREATE INDEX webhook_late_delivery_by_attempt ON webhook_late_delivery (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX webhook_late_delivery_by_account ON webhook_late_delivery (account_id, id);
