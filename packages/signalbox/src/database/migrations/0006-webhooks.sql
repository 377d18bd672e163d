-- Which entity owns an instance name, for every name that two entities could come to (a/b and a-b are both a-b; d/x written reversibly
-- is d_2fx, and so is d_2fx itself). spelling is the exact text of the entity, and entity is that text folded. spelling is null until an exact
-- text arrives.
CREATE TABLE webhook_claim (
  account_id TEXT NOT NULL,
  agent      TEXT NOT NULL,
  name       TEXT NOT NULL,
  entity     TEXT NOT NULL,
  spelling   TEXT,
  PRIMARY KEY (account_id, agent, name)
);

-- The newest verified deliveries, for people to look at and to replay. What an agent keeps is in its own database.
-- error: why the delivery failed or was refused (JSON: name, message, stack). request: what is known of a rejected request (JSON).
-- replayed_at: when an operator has replayed a failed delivery with success.
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
  body         BLOB,
  error        TEXT,
  request      TEXT,
  replayed_at  BIGINT
);

-- Lists with any filter, in the order of arrival: the columns of all filters, so that rows that do not match are not read.
CREATE INDEX webhook_delivery_by_account
  ON webhook_delivery (account_id, id, status, source, received_at, instance, type, reason);

-- Counts by source and outcome.
CREATE INDEX webhook_delivery_by_outcome ON webhook_delivery (account_id, source, status, id, received_at);

-- A delivery by the id of its provider: a failed one that was sent again with success, for example.
CREATE INDEX webhook_delivery_by_delivery ON webhook_delivery (account_id, delivery_id, id, source, status);

-- Of each kind so many are kept: the rows beyond are found in the order of their ids.
CREATE INDEX webhook_delivery_succeeded ON webhook_delivery (id, status) WHERE status IN ('accepted', 'duplicate');
CREATE INDEX webhook_delivery_failed ON webhook_delivery (account_id, id) WHERE status = 'failed';
CREATE INDEX webhook_delivery_rejected ON webhook_delivery (account_id, id) WHERE status = 'rejected';

-- Failed deliveries that no operator has replayed.
CREATE INDEX webhook_delivery_failing
  ON webhook_delivery (account_id, source, delivery_id, id, received_at) WHERE status = 'failed' AND replayed_at IS NULL;

-- Deliveries that were answered 202 because their instance took too long. A row goes when the instance has handled the delivery.
-- next_attempt_at: null when all attempts have failed and a person has to decide. node: in a cluster, the node that attempts the delivery. The
-- others leave it alone until next_attempt_at, unless that node is gone. Null if no node has it.
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
  last_error      TEXT,
  node            BIGINT
);

CREATE INDEX webhook_late_delivery_by_attempt ON webhook_late_delivery (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX webhook_late_delivery_by_account ON webhook_late_delivery (account_id, id);
