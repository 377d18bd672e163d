-- An instance name stands for an entity within one account. Claims made before belong to the account default.
CREATE TABLE webhook_entity_of_account (
  account_id TEXT NOT NULL,
  agent      TEXT NOT NULL,
  name       TEXT NOT NULL,
  entity     TEXT NOT NULL,
  PRIMARY KEY (account_id, agent, name)
);

INSERT INTO webhook_entity_of_account (account_id, agent, name, entity)
SELECT 'default', agent, name, entity FROM webhook_entity;

DROP TABLE webhook_entity;

ALTER TABLE webhook_entity_of_account RENAME TO webhook_entity;
