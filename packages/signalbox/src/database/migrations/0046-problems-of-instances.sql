-- compatible-from: 0041
-- What is wrong with an instance, so that it is found without opening its database: waiting queue items, those of them that have failed and wait for
-- another attempt, dead letters, and the last error of its code.
ALTER TABLE agent_instance ADD COLUMN queued BIGINT NOT NULL DEFAULT 0;

ALTER TABLE agent_instance ADD COLUMN retrying BIGINT NOT NULL DEFAULT 0;

ALTER TABLE agent_instance ADD COLUMN dead_letters BIGINT NOT NULL DEFAULT 0;

ALTER TABLE agent_instance ADD COLUMN last_error TEXT;

ALTER TABLE agent_instance ADD COLUMN last_error_at BIGINT;

-- Few instances have problems: the indexes contain those only.
CREATE INDEX agent_instance_by_letters ON agent_instance (account_id, dead_letters) WHERE dead_letters > 0;

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
