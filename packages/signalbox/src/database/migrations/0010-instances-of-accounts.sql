-- Instances belong to an account. Those that were there before belong to the account default.
CREATE TABLE agent_instance_of_account (
  account_id     TEXT NOT NULL,
  agent          TEXT NOT NULL,
  name           TEXT NOT NULL,
  created_at     BIGINT NOT NULL,
  last_active_at BIGINT NOT NULL,
  next_due_at    BIGINT,
  PRIMARY KEY (account_id, agent, name)
);

INSERT INTO agent_instance_of_account (account_id, agent, name, created_at, last_active_at, next_due_at)
SELECT 'default', agent, name, created_at, last_active_at, next_due_at FROM agent_instance;

DROP TABLE agent_instance;

ALTER TABLE agent_instance_of_account RENAME TO agent_instance;

-- Due work is read agent by agent, in this order and page by page: work of agents that are not loaded costs nothing.
CREATE INDEX agent_instance_by_due ON agent_instance (agent, next_due_at, account_id, name) WHERE next_due_at IS NOT NULL;
