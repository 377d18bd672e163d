-- compatible-from: 0041
-- In a cluster: the node that attempts the delivery. The others leave it alone until next_attempt_at, unless that node is gone. NULL if no node has it,
-- and in rows of earlier versions.
ALTER TABLE webhook_late_delivery ADD COLUMN node BIGINT;
