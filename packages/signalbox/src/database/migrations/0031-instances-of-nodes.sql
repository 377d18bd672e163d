-- In a cluster: the node that wakes the instance (0 for none yet), and the epoch in which it wrote the due time. A write of an earlier epoch is
-- ignored: it comes from a node that has lost the instance. NULL without a cluster. Earlier versions ran the instances of a cluster on the disk of
-- each node, so they cannot run beside this one.
ALTER TABLE agent_instance ADD COLUMN node BIGINT;

ALTER TABLE agent_instance ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0;

CREATE INDEX agent_instance_by_node ON agent_instance (node, next_due_at) WHERE node IS NOT NULL AND next_due_at IS NOT NULL;
