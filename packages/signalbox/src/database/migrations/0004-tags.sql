-- Rows of resources are the truth; keys, values, postings, bitmaps and counts are an index over them, kept in the same transaction.
-- Texts that are looked up or sorted are stored as "sort keys": their UTF-8 bytes, shortened with a hash when long, because both
-- engines compare bytes alike and PostgreSQL limits the size of an index entry.

-- One row per account that has ever used tags. Updating it is the lock under which an account's tags are written.
CREATE TABLE tag_account (
  account_id    TEXT PRIMARY KEY,
  account_no    BIGINT NOT NULL UNIQUE,
  next_resource BIGINT NOT NULL,
  next_key      BIGINT NOT NULL,
  next_value    BIGINT NOT NULL,
  next_change   BIGINT NOT NULL,
  -- Changes up to here are no longer kept.
  pruned_change BIGINT NOT NULL
);

-- resource_no is dense within the account and never used twice; it is the order of lists. tags is null once deleted: the row stays
-- while its history is kept, so that a resource tagged again keeps its place.
CREATE TABLE tag_resource (
  account_no  BIGINT NOT NULL,
  resource_no BIGINT NOT NULL,
  type        TEXT NOT NULL,
  id          TEXT NOT NULL,
  zone_id     TEXT NOT NULL,
  parent_id   TEXT NOT NULL,
  name        TEXT NOT NULL,
  name_folded TEXT NOT NULL,
  tags        TEXT,
  etag        TEXT NOT NULL,
  updated_at  BIGINT NOT NULL,
  PRIMARY KEY (account_no, resource_no)
) WITHOUT ROWID;

CREATE UNIQUE INDEX tag_resource_by_id ON tag_resource (account_no, id, type, zone_id, parent_id);

-- key_no 0 is the resource type, a key like any other to the index.
CREATE TABLE tag_key (
  account_no BIGINT NOT NULL,
  key_no     BIGINT NOT NULL,
  sort_key   BLOB NOT NULL,
  folded     BLOB NOT NULL,
  -- The whole text when the sort key is shortened.
  full_text  BLOB,
  uses       BIGINT NOT NULL,
  has_bitmap BIGINT NOT NULL,
  PRIMARY KEY (account_no, key_no)
) WITHOUT ROWID;

CREATE UNIQUE INDEX tag_key_by_text ON tag_key (account_no, sort_key);
CREATE INDEX tag_key_by_folded ON tag_key (account_no, folded);

CREATE TABLE tag_value (
  account_no BIGINT NOT NULL,
  key_no     BIGINT NOT NULL,
  value_no   BIGINT NOT NULL,
  sort_key   BLOB NOT NULL,
  folded     BLOB NOT NULL,
  full_text  BLOB,
  uses       BIGINT NOT NULL,
  has_bitmap BIGINT NOT NULL,
  PRIMARY KEY (account_no, key_no, value_no)
) WITHOUT ROWID;

CREATE UNIQUE INDEX tag_value_by_text ON tag_value (account_no, key_no, sort_key);
CREATE INDEX tag_value_by_folded ON tag_value (account_no, key_no, folded);

-- How many resources of a type carry a value; type_no is the value_no of the type.
CREATE TABLE tag_value_type (
  account_no BIGINT NOT NULL,
  key_no     BIGINT NOT NULL,
  type_no    BIGINT NOT NULL,
  value_no   BIGINT NOT NULL,
  uses       BIGINT NOT NULL,
  PRIMARY KEY (account_no, key_no, type_no, value_no)
) WITHOUT ROWID;

CREATE TABLE tag_posting (
  account_no  BIGINT NOT NULL,
  key_no      BIGINT NOT NULL,
  value_no    BIGINT NOT NULL,
  resource_no BIGINT NOT NULL,
  PRIMARY KEY (account_no, key_no, value_no, resource_no)
) WITHOUT ROWID;

-- Sets of resources of frequent values, and (value_no 0) of frequent keys, in chunks of 16,384 resource numbers.
-- Clustered by row id and not by its key: SQLite then keeps a whole chunk in one page.
CREATE TABLE tag_bitmap (
  account_no BIGINT NOT NULL,
  key_no     BIGINT NOT NULL,
  value_no   BIGINT NOT NULL,
  chunk_no   BIGINT NOT NULL,
  bits       BLOB NOT NULL,
  PRIMARY KEY (account_no, key_no, value_no, chunk_no)
);

-- History of each resource and change feed of the account in one. Tags are null where there were none.
CREATE TABLE tag_change (
  account_no  BIGINT NOT NULL,
  change_no   BIGINT NOT NULL,
  resource_no BIGINT NOT NULL,
  changed_at  BIGINT NOT NULL,
  actor       TEXT NOT NULL,
  action      TEXT NOT NULL,
  tags_before TEXT,
  tags_after  TEXT,
  PRIMARY KEY (account_no, change_no)
) WITHOUT ROWID;

CREATE INDEX tag_change_by_resource ON tag_change (account_no, resource_no, change_no);

-- A change of the tags of many resources in the background. request is JSON: the query, the operation and its tags. Resources with numbers up to upto
-- are visited in ascending order; position is the last visited one, and moves in the transaction of the changes. runner: the process that works on the
-- job, until runner_until or longer.
CREATE TABLE tag_job (
  id           TEXT PRIMARY KEY,
  account_id   TEXT NOT NULL,
  actor        TEXT NOT NULL,
  request      TEXT NOT NULL,
  state        TEXT NOT NULL,
  upto         BIGINT NOT NULL,
  position     BIGINT NOT NULL,
  total        BIGINT NOT NULL,
  changed      BIGINT NOT NULL,
  unchanged    BIGINT NOT NULL,
  failed       BIGINT NOT NULL,
  runner       TEXT,
  runner_until BIGINT,
  created_at   BIGINT NOT NULL,
  started_at   BIGINT,
  ended_at     BIGINT
);

CREATE INDEX tag_job_by_account ON tag_job (account_id, id);
CREATE INDEX tag_job_running ON tag_job (id) WHERE state = 'running';
CREATE INDEX tag_job_ended ON tag_job (ended_at) WHERE ended_at IS NOT NULL;

-- The resources that a job could not change. reason is a name of the error table.
CREATE TABLE tag_job_failure (
  job_id      TEXT NOT NULL,
  resource_no BIGINT NOT NULL,
  type        TEXT NOT NULL,
  id          TEXT NOT NULL,
  zone_id     TEXT NOT NULL,
  parent_id   TEXT NOT NULL,
  reason      TEXT NOT NULL,
  PRIMARY KEY (job_id, resource_no)
) WITHOUT ROWID;

-- How far each agent instance that subscribes to tag changes has got in its account's feed.
CREATE TABLE tag_subscription (
  agent      TEXT NOT NULL,
  name       TEXT NOT NULL,
  account_id TEXT NOT NULL,
  position   BIGINT NOT NULL,
  PRIMARY KEY (agent, name, account_id)
);
