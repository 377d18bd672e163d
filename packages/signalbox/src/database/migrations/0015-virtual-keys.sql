-- What makes a token a virtual key. policy: one JSON object (budgets, rate limits, models, providers, routes, metadata, owner, tags), checked
-- by the code that writes it and kept in memory; null for a token without one. owner repeats the policy's owner, for listings by owner.
-- previous_hash: the secret before the last rotation, valid until previous_ends_at.
ALTER TABLE token ADD COLUMN policy TEXT;
ALTER TABLE token ADD COLUMN owner TEXT;
ALTER TABLE token ADD COLUMN disabled BIGINT NOT NULL DEFAULT 0;
ALTER TABLE token ADD COLUMN modified_at BIGINT;
ALTER TABLE token ADD COLUMN previous_hash TEXT;
ALTER TABLE token ADD COLUMN previous_ends_at BIGINT;

CREATE INDEX token_by_owner ON token (account_id, owner, id) WHERE owner IS NOT NULL;
