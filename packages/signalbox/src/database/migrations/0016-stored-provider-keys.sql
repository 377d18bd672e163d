-- Provider keys, stored encrypted or named. gateway_id: null for all gateways of the account. alias: empty for a key that only the pool uses.
-- secret_id: env:NAME or file:PATH for a key that is not stored here, else null and sealed and data_key hold it. bound_to: the address that
-- may receive the key of a custom provider. invalid_since: the provider refused the key; it is not used until it is edited.
CREATE TABLE stored_provider_key (
  id                TEXT PRIMARY KEY,
  account_id        TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
  gateway_id        TEXT,
  provider_slug     TEXT NOT NULL,
  alias             TEXT NOT NULL,
  is_default        BIGINT NOT NULL,
  secret_id         TEXT,
  sealed            TEXT,
  data_key          TEXT,
  preview           TEXT NOT NULL,
  bound_to          TEXT,
  weight            BIGINT NOT NULL,
  models            TEXT NOT NULL,
  rate_limit        BIGINT,
  rate_limit_period BIGINT,
  disabled          BIGINT NOT NULL,
  invalid_since     BIGINT,
  last_used_at      BIGINT,
  created_at        BIGINT NOT NULL,
  modified_at       BIGINT NOT NULL,
  FOREIGN KEY (account_id, gateway_id) REFERENCES gateway (account_id, id) ON DELETE CASCADE
);

CREATE UNIQUE INDEX stored_provider_key_by_alias
  ON stored_provider_key (account_id, COALESCE(gateway_id, ''), provider_slug, alias) WHERE alias <> '';

INSERT INTO stored_provider_key
  (id, account_id, gateway_id, provider_slug, alias, is_default, secret_id, preview, weight, models, disabled, created_at, modified_at)
SELECT id, account_id, gateway_id, provider_slug, alias, is_default, 'env:' || env_name, '', 1, '[]', 0, modified_at, modified_at
FROM provider_key;

DROP TABLE provider_key;
