-- compatible-from: 0009
-- Jobs that providers run for callers (batches, videos, fine-tuning) and that are not settled: what they may cost is reserved, and charged when they have
-- ended. A row is removed by the one process that settles the job.
CREATE TABLE gateway_job (
  account_id TEXT NOT NULL,
  gateway_id TEXT NOT NULL,
  provider TEXT NOT NULL,
  job_id TEXT NOT NULL,
  -- JSON: kind, path, models, reserved amount, and whom the job is charged to.
  details TEXT NOT NULL,
  -- The process that holds the reservation.
  owner TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  -- When the provider is asked next.
  due_at BIGINT NOT NULL,
  PRIMARY KEY (account_id, gateway_id, provider, job_id)
);
CREATE INDEX gateway_job_due ON gateway_job (due_at);
