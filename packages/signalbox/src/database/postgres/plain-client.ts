/** A connection that belongs to no node: for backups and restores. */
import { Client, types } from "pg";

const CONNECT_TIMEOUT_MS = 5000;
/** A transaction may be idle while a file is read or written. */
const SESSION_OPTIONS =
  "-c statement_timeout=0 -c idle_in_transaction_session_timeout=0 -c synchronous_commit=on";

/** Connects to the first of the servers that is not a standby. */
export async function connectPlain(urls: readonly string[]): Promise<Client> {
  let failure: unknown = new Error("no server is configured");
  for (const url of urls) {
    const client = new Client({
      connectionString: url,
      application_name: "signalbox backup",
      options: SESSION_OPTIONS,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      types: {
        getTypeParser: (oid, format) =>
          oid === types.builtins.INT8 ? Number : types.getTypeParser(oid, format),
      },
    });
    // The running statement reports it.
    client.on("error", () => undefined);
    try {
      await client.connect();
      const { rows } = await client.query<{ standby: boolean }>("SELECT pg_is_in_recovery() AS standby");
      if (rows[0]?.standby !== true) return client;
      failure = new Error("the server is a standby");
    } catch (error) {
      failure = error;
    }
    // The connection is broken already, or was never open.
    await client.end().catch(() => undefined);
  }
  throw failure;
}

/** The error of a host with several addresses has a code and no message. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || ((error as NodeJS.ErrnoException).code ?? "no answer");
}
