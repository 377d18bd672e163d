-- Settings are one JSON object, checked by the code that writes it: they are read whole, kept in memory, and grow with the product.
CREATE TABLE gateway (
  account_id  TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
  id          TEXT NOT NULL,
  settings    TEXT NOT NULL,
  is_default  BIGINT NOT NULL,
  created_at  BIGINT NOT NULL,
  modified_at BIGINT NOT NULL,
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

-- A provider key is named, never kept: env_name is the environment variable that holds it.
CREATE TABLE provider_key (
  id             TEXT PRIMARY KEY,
  account_id     TEXT NOT NULL,
  gateway_id     TEXT NOT NULL,
  provider_slug  TEXT NOT NULL,
  alias          TEXT NOT NULL,
  is_default     BIGINT NOT NULL,
  env_name       TEXT NOT NULL,
  modified_at    BIGINT NOT NULL,
  UNIQUE (account_id, gateway_id, provider_slug, alias),
  FOREIGN KEY (account_id, gateway_id) REFERENCES gateway (account_id, id) ON DELETE CASCADE
);

-- Money spent in one window of one spend rule's bucket, in millionths of a US dollar.
CREATE TABLE gateway_spend (
  account_id   TEXT NOT NULL,
  gateway_id   TEXT NOT NULL,
  bucket       TEXT NOT NULL,
  slot_start   BIGINT NOT NULL,
  micro_dollars BIGINT NOT NULL,
  PRIMARY KEY (account_id, gateway_id, bucket, slot_start),
  FOREIGN KEY (account_id, gateway_id) REFERENCES gateway (account_id, id) ON DELETE CASCADE
);
