-- When an amount stops counting, so that only live windows are loaded and the others removed. Windows are at most 366 days; for rows from
-- before this column the longest is assumed, and the rule that reads them knows better.
ALTER TABLE gateway_spend ADD COLUMN ends_at BIGINT NOT NULL DEFAULT 0;
UPDATE gateway_spend SET ends_at = slot_start + 63244800000;
CREATE INDEX gateway_spend_by_end ON gateway_spend (ends_at);
