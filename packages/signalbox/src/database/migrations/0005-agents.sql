-- Every instance an agent ever had, except destroyed ones. Instances' own data is in their databases; this is how they are found.
-- next_due_at: no later than the earliest due queue item or schedule of the instance; null when it has none.
-- In a cluster, node wakes the instance (0 for none yet), and epoch is the one in which it wrote the due time. A write of an earlier epoch is
-- ignored: it comes from a node that has lost the instance. node is null without a cluster.
-- queued to last_error_at: what is wrong with the instance, so that it is found without opening its database: waiting queue items, those of them
-- that have failed and wait for another attempt, dead letters, and the last error of its code.
CREATE TABLE agent_instance (
  account_id     TEXT NOT NULL,
  agent          TEXT NOT NULL,
  name           TEXT NOT NULL,
  created_at     BIGINT NOT NULL,
  last_active_at BIGINT NOT NULL,
  next_due_at    BIGINT,
  node           BIGINT,
  epoch          BIGINT NOT NULL DEFAULT 0,
  queued         BIGINT NOT NULL DEFAULT 0,
  retrying       BIGINT NOT NULL DEFAULT 0,
  dead_letters   BIGINT NOT NULL DEFAULT 0,
  last_error     TEXT,
  last_error_at  BIGINT,
  PRIMARY KEY (account_id, agent, name)
);

-- Due work is read agent by agent, in this order and page by page: work of agents that are not loaded costs nothing.
CREATE INDEX agent_instance_by_due ON agent_instance (agent, next_due_at, account_id, name) WHERE next_due_at IS NOT NULL;
CREATE INDEX agent_instance_by_node ON agent_instance (node, next_due_at) WHERE node IS NOT NULL AND next_due_at IS NOT NULL;

-- Lists of an agent's instances by their last activity.
CREATE INDEX agent_instance_by_activity ON agent_instance (account_id, agent, last_active_at DESC, name);

-- Few instances have work that waits, or problems: the indexes contain those only.
CREATE INDEX agent_instance_by_queue ON agent_instance (account_id, agent, queued DESC, name) WHERE queued > 0;

CREATE INDEX agent_instance_by_letters ON agent_instance (account_id, dead_letters) WHERE dead_letters > 0;
CREATE INDEX agent_instance_by_agent_letters ON agent_instance (account_id, agent, dead_letters DESC, name) WHERE dead_letters > 0;

CREATE INDEX agent_instance_by_retries ON agent_instance (account_id, retrying) WHERE retrying > 0;

CREATE INDEX agent_instance_by_error ON agent_instance (account_id, last_error_at) WHERE last_error_at IS NOT NULL;

-- The last errors of instances with their stacks, a few of each instance.
CREATE TABLE agent_failure (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  agent      TEXT NOT NULL,
  name       TEXT NOT NULL,
  at         BIGINT NOT NULL,
  kind       TEXT NOT NULL,
  label      TEXT NOT NULL,
  error      TEXT NOT NULL
);

CREATE INDEX agent_failure_by_instance ON agent_failure (account_id, agent, name, id);
