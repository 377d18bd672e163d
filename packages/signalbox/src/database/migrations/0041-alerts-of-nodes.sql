-- compatible-from: 0037
-- Alerts of several nodes. checked_at is the time of the last check: of the nodes that want to check a rule, one does.
ALTER TABLE alert_rule ADD COLUMN checked_at BIGINT NOT NULL DEFAULT 0;

-- What a node has measured for a rule in one slot of its window. version is the rule's modified_at; durations is a JSON array, the histogram.
CREATE TABLE alert_measure (
  rule_id   TEXT NOT NULL REFERENCES alert_rule (id) ON DELETE CASCADE,
  version   BIGINT NOT NULL,
  slot      BIGINT NOT NULL,
  node      TEXT NOT NULL,
  count     BIGINT NOT NULL,
  failed    BIGINT NOT NULL,
  amount    DOUBLE PRECISION NOT NULL,
  durations TEXT NOT NULL,
  PRIMARY KEY (rule_id, version, slot, node)
);
