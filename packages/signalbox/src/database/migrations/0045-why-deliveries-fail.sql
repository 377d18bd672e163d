-- compatible-from: 0041
-- error: why the delivery failed or was refused (JSON: name, message, stack). request: what is known of a rejected request (JSON).
-- replayed_at: when an operator has replayed a failed delivery with success.
ALTER TABLE webhook_delivery ADD COLUMN error TEXT;

ALTER TABLE webhook_delivery ADD COLUMN request TEXT;

ALTER TABLE webhook_delivery ADD COLUMN replayed_at BIGINT;

-- A failed delivery that its provider has sent again with success is found by the id of the provider.
CREATE INDEX webhook_delivery_by_delivery ON webhook_delivery (account_id, source, delivery_id, id);
