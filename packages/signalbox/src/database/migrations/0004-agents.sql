-- Every instance an agent ever had, except destroyed ones. Instances' own data is in their databases; this is how they are found.
-- next_due_at: no later than the earliest due queue item or schedule of the instance; null when it has none.
CREATE TABLE agent_instance (
  agent          TEXT NOT NULL,
  name           TEXT NOT NULL,
  created_at     BIGINT NOT NULL,
  last_active_at BIGINT NOT NULL,
  next_due_at    BIGINT,
  PRIMARY KEY (agent, name)
);

CREATE INDEX agent_instance_by_due ON agent_instance (next_due_at) WHERE next_due_at IS NOT NULL;
