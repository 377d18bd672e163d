-- Settings are one JSON object, checked by the code that writes it: they are read whole, kept in memory, and grow with the product.
-- cache_generation is part of the keys of cached responses: a change of the gateway makes them unreachable on every node.
CREATE TABLE gateway (
  account_id  TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
  id          TEXT NOT NULL,
  settings    TEXT NOT NULL,
  is_default  BIGINT NOT NULL,
  created_at  BIGINT NOT NULL,
  modified_at BIGINT NOT NULL,
  cache_generation BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, id)
);

CREATE TABLE custom_provider (
  id          TEXT PRIMARY KEY,
  account_id  TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
  slug        TEXT NOT NULL,
  details     TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  modified_at BIGINT NOT NULL,
  UNIQUE (account_id, slug)
);

-- Gateways whose row is gone and whose tokens, calls and tags may not be yet; written together with the row's deletion.
CREATE TABLE gateway_deletion (
  account_id TEXT NOT NULL,
  gateway_id TEXT NOT NULL,
  deleted_at BIGINT NOT NULL,
  PRIMARY KEY (account_id, gateway_id)
);

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

-- Settings of the gateway that belong to an account: `prices` and `limits`, each one JSON object.
CREATE TABLE gateway_account_setting (
  account_id  TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
  name        TEXT NOT NULL,
  value       TEXT NOT NULL,
  modified_at BIGINT NOT NULL,
  PRIMARY KEY (account_id, name)
);

-- A dynamic route of a gateway. version_id is the deployed version; deployment_id the entry of the history that deployed it.
CREATE TABLE gateway_route (
  id            TEXT PRIMARY KEY,
  account_id    TEXT NOT NULL,
  gateway_id    TEXT NOT NULL,
  name          TEXT NOT NULL,
  version_id    TEXT NOT NULL,
  deployment_id TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  modified_at   BIGINT NOT NULL,
  UNIQUE (account_id, gateway_id, name),
  FOREIGN KEY (account_id, gateway_id) REFERENCES gateway (account_id, id) ON DELETE CASCADE
);

-- The graphs of a route, which never change. elements is the JSON as it was sent.
CREATE TABLE gateway_route_version (
  id         TEXT PRIMARY KEY,
  route_id   TEXT NOT NULL REFERENCES gateway_route (id) ON DELETE CASCADE,
  elements   TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE INDEX gateway_route_version_by_route ON gateway_route_version (route_id, id);

-- Which version was deployed when.
CREATE TABLE gateway_route_deployment (
  id         TEXT PRIMARY KEY,
  route_id   TEXT NOT NULL REFERENCES gateway_route (id) ON DELETE CASCADE,
  version_id TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE INDEX gateway_route_deployment_by_route ON gateway_route_deployment (route_id, id);
