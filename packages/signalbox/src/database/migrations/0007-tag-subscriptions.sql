-- How far each agent instance that subscribes to tag changes has got in its account's feed.
CREATE TABLE tag_subscription (
  agent      TEXT NOT NULL,
  name       TEXT NOT NULL,
  account_id TEXT NOT NULL,
  position   BIGINT NOT NULL,
  PRIMARY KEY (agent, name, account_id)
);
