-- compatible-from: 0009
-- The last turns of instances, for the timeline: some hundred of each instance, for a day. Written in batches some time after the turn.
-- skipped: turns of the instance before this one that were not recorded. payload and state are JSON in bounded length.
CREATE TABLE agent_turn (
  id          TEXT PRIMARY KEY,
  account_id  TEXT NOT NULL,
  agent       TEXT NOT NULL,
  name        TEXT NOT NULL,
  at          BIGINT NOT NULL,
  duration_us BIGINT NOT NULL,
  kind        TEXT NOT NULL,
  label       TEXT NOT NULL,
  reference   TEXT,
  error       TEXT,
  failure_id  TEXT,
  skipped     BIGINT NOT NULL DEFAULT 0,
  payload     TEXT,
  state       TEXT
);

CREATE INDEX agent_turn_by_instance ON agent_turn (account_id, agent, name, id);
