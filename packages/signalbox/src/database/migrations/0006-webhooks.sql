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

-- A route of a source that was created through the interface. settings is JSON; secrets in it are encrypted. Routes of the configuration file have no row here.
CREATE TABLE webhook_route (
  account_id  TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
  source      TEXT NOT NULL,
  name        TEXT NOT NULL,
  settings    TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  modified_at BIGINT NOT NULL,
  PRIMARY KEY (account_id, source, name)
);

-- What a route of either kind does at present. A route without a row runs. paused_because: operator, gone (the receiver answered 410) or failing.
-- failing_since: time of the first failed attempt since the last success. node: in a cluster, the node that makes the route's attempts, until node_until.
CREATE TABLE webhook_route_state (
  account_id     TEXT NOT NULL,
  source         TEXT NOT NULL,
  name           TEXT NOT NULL,
  paused_at      BIGINT,
  paused_because TEXT,
  failing_since  BIGINT,
  node           BIGINT,
  node_until     BIGINT,
  listener       TEXT,
  listener_until BIGINT,
  PRIMARY KEY (account_id, source, name)
);

-- The connection through which a listener receives its events, at whichever node: the newest one.
CREATE TABLE webhook_listener (
  account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
  name       TEXT NOT NULL,
  connection TEXT NOT NULL,
  PRIMARY KEY (account_id, name)
);

-- What arrived at a source with routes: the signed bytes and all headers. sealed_headers are those that contain signatures and credentials, encrypted.
-- delivery_id is the sender's; batch is the delivery of whose list this one was an item. Other sources have no rows here.
CREATE TABLE webhook_stored_delivery (
  id              TEXT PRIMARY KEY,
  account_id      TEXT NOT NULL,
  source          TEXT NOT NULL,
  delivery_id     TEXT NOT NULL,
  batch           TEXT,
  type            TEXT NOT NULL,
  title           TEXT NOT NULL,
  entity          TEXT,
  entity_is_exact BIGINT NOT NULL,
  target          TEXT NOT NULL,
  received_at     BIGINT NOT NULL,
  content_type    TEXT,
  headers         TEXT NOT NULL,
  sealed_headers  TEXT,
  body_bytes      BIGINT NOT NULL,
  body            BLOB NOT NULL,
  UNIQUE (account_id, source, delivery_id)
);

CREATE INDEX webhook_stored_delivery_by_batch ON webhook_stored_delivery (batch) WHERE batch IS NOT NULL;

-- The sum of the sizes is read every minute, without the bodies.
CREATE INDEX webhook_stored_delivery_by_size ON webhook_stored_delivery (id, body_bytes);

-- A delivery for one route. state: waiting, delivered, failed, cancelled or ignored; reason says why. due_at: time of the next attempt; during an attempt, the
-- time at which the attempt has certainly ended; null unless state is waiting. node: the node that makes an attempt, 0 for a process that is alone.
-- attempts counts all of them, tries those since the event was queued last. replay: the bulk replay that queued it. repeat: the ending of the id that an
-- agent sees, for an event that was replayed after it had been delivered.
CREATE TABLE webhook_event (
  id          TEXT PRIMARY KEY,
  account_id  TEXT NOT NULL,
  source      TEXT NOT NULL,
  route       TEXT NOT NULL,
  delivery    TEXT NOT NULL,
  type        TEXT NOT NULL,
  entity      TEXT,
  received_at BIGINT NOT NULL,
  state       TEXT NOT NULL,
  reason      TEXT,
  due_at      BIGINT,
  node        BIGINT,
  attempts    BIGINT NOT NULL,
  tries       BIGINT NOT NULL,
  cause       TEXT NOT NULL,
  dedupe_key  TEXT,
  replay      TEXT,
  repeat      TEXT,
  issue       TEXT
);

CREATE INDEX webhook_event_by_due ON webhook_event (account_id, source, route, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_event_by_entity ON webhook_event (account_id, source, route, entity, id) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_event_by_account ON webhook_event (account_id, id);
CREATE INDEX webhook_event_by_delivery ON webhook_event (delivery);
CREATE INDEX webhook_event_by_replay ON webhook_event (replay) WHERE replay IS NOT NULL;
CREATE INDEX webhook_event_by_issue ON webhook_event (issue) WHERE issue IS NOT NULL;
CREATE INDEX webhook_event_by_dedupe ON webhook_event (account_id, source, route, dedupe_key, id) WHERE dedupe_key IS NOT NULL;

-- One try of an event. request and response_headers are JSON; response is the beginning of the answer's body.
CREATE TABLE webhook_attempt (
  id               TEXT PRIMARY KEY,
  account_id       TEXT NOT NULL,
  event            TEXT NOT NULL,
  number           BIGINT NOT NULL,
  cause            TEXT NOT NULL,
  started_at       BIGINT NOT NULL,
  duration_ms      BIGINT NOT NULL,
  outcome          TEXT NOT NULL,
  status           BIGINT,
  error            TEXT,
  request          TEXT,
  response_headers TEXT,
  response         BLOB
);

CREATE INDEX webhook_attempt_by_event ON webhook_attempt (event, id);

-- A bulk replay. query is JSON; events up to the id upto are replayed in the order of their ids, after position. node: as for routes.
CREATE TABLE webhook_replay (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  query      TEXT NOT NULL,
  state      TEXT NOT NULL,
  upto       TEXT NOT NULL,
  position   TEXT NOT NULL,
  total      BIGINT NOT NULL,
  queued     BIGINT NOT NULL,
  skipped    BIGINT NOT NULL,
  node       BIGINT,
  node_until BIGINT,
  created_at BIGINT NOT NULL,
  ended_at   BIGINT
);

CREATE INDEX webhook_replay_by_account ON webhook_replay (account_id, id);

-- A delivery with a name, to be sent again as an example. It outlives the delivery that it was copied from.
CREATE TABLE webhook_example (
  account_id   TEXT NOT NULL,
  name         TEXT NOT NULL,
  source       TEXT NOT NULL,
  type         TEXT NOT NULL,
  entity       TEXT,
  target       TEXT NOT NULL,
  content_type TEXT,
  headers      TEXT NOT NULL,
  body         BLOB NOT NULL,
  created_at   BIGINT NOT NULL,
  PRIMARY KEY (account_id, name)
);

-- Events of a route that failed for the same cause. state: open, acknowledged or resolved. count: events since it was opened last; sample is one of them.
CREATE TABLE webhook_issue (
  id          TEXT PRIMARY KEY,
  account_id  TEXT NOT NULL,
  source      TEXT NOT NULL,
  route       TEXT NOT NULL,
  cause       TEXT NOT NULL,
  state       TEXT NOT NULL,
  count       BIGINT NOT NULL,
  first_at    BIGINT NOT NULL,
  last_at     BIGINT NOT NULL,
  sample      TEXT NOT NULL,
  resolved_at BIGINT,
  UNIQUE (account_id, source, route, cause)
);
