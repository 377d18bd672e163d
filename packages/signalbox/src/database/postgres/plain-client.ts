/** A connection that belongs to no node: for backups and restores. */
import type { Client } from "pg";
import { connectPrimary, Servers } from "../../engines/postgres-session/index.ts";

/** A large table is hashed, or the files of many instances are read, between two statements. A backup that was stopped holds its snapshot no longer. */
const MAX_IDLE_MS = 600_000;

export function connectPlain(url: string): Promise<Client> {
  return connectPrimary(new Servers(url), {
    name: "signalbox backup",
    statementMs: null,
    idleTransactionMs: MAX_IDLE_MS,
  });
}
