-- How far stored calls have been copied to S3-compatible storage. `name` is the target; `position` is opaque and belongs to the call log.
CREATE TABLE log_push (
  name TEXT PRIMARY KEY,
  position TEXT NOT NULL,
  pushed_at BIGINT NOT NULL,
  calls BIGINT NOT NULL,
  -- The process that copies now, and until when no other one begins.
  holder TEXT NOT NULL DEFAULT '',
  held_until BIGINT NOT NULL DEFAULT 0
);
