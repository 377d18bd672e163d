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
