-- How far stored calls have been copied to S3-compatible storage. `name` is the target; `position` is opaque and belongs to the call log.
CREATE TABLE log_push (
  name TEXT PRIMARY KEY,
  position TEXT NOT NULL,
  pushed_at BIGINT NOT NULL,
  calls BIGINT NOT NULL
);
