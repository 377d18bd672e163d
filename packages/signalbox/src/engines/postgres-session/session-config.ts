/**
 * What every session with PostgreSQL gets: the settings on which durability depends, and limits of time. A session that needs another
 * limit says so where it is opened; none is without one by accident.
 *
 * The limits belong to the server. A process that was stopped, or whose machine is gone, cannot end its own transaction, and a client that gives up leaves
 * its statement running.
 */
import { type ClientConfig, types } from "pg";

/**
 * A transaction whose client is silent ends after this time, and its locks with it: a node that stops inside of one is declared dead later than that
 * (`cluster.deadAfterMs`, 2.5 s), so its locks delay no other node for longer than its silence does.
 */
const IDLE_TRANSACTION_MS = 2000;
/**
 * Longer than a silent transaction can hold the lock, and short enough for a second attempt before a client should have an answer: after a pause of the
 * server's machine, this limit and that of the silent transaction are over at the same moment.
 */
const LOCK_MS = 2500;
/** A statement that the server has not ended by then is on a connection that is lost. */
const ANSWER_MS = 2000;
/** 25 s after the machine of the client is gone, the server ends the session, and the locks of the session with it. */
const KEEPALIVE = ["tcp_keepalives_idle=10", "tcp_keepalives_interval=5", "tcp_keepalives_count=3"];

export interface SessionOptions {
  /** Shown by `pg_stat_activity`. */
  readonly name: string;
  /** The server ends a statement after this time; null for statements whose duration depends on the amount of data. */
  readonly statementMs: number | null;
  /** For work on files between the statements of a transaction. Default 2 s. */
  readonly idleTransactionMs?: number;
  /** Further settings, as `name=value`. */
  readonly settings?: readonly string[] | undefined;
}

export function sessionConfig(options: SessionOptions): ClientConfig {
  const { name, statementMs, idleTransactionMs = IDLE_TRANSACTION_MS, settings = [] } = options;
  const all = [
    "synchronous_commit=on",
    `idle_in_transaction_session_timeout=${idleTransactionMs}`,
    `lock_timeout=${LOCK_MS}`,
    `statement_timeout=${statementMs ?? 0}`,
    ...KEEPALIVE,
    ...settings,
  ];
  return {
    application_name: name,
    options: all.map((setting) => `-c ${setting}`).join(" "),
    keepAlive: true,
    types: {
      getTypeParser: (oid, format) =>
        oid === types.builtins.INT8 ? Number : types.getTypeParser(oid, format),
    },
    ...(statementMs === null ? {} : { query_timeout: statementMs + ANSWER_MS }),
  };
}
