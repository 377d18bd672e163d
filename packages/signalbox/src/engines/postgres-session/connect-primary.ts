/** Connects to the server that accepts writes. */
import { Socket } from "node:net";
import { Client } from "pg";
import { afterAwakeTime } from "../../core/awake-time.ts";
import { hasNoRoom, isUnavailable } from "./failure.ts";
import type { Servers } from "./servers.ts";
import { sessionConfig, type SessionOptions } from "./session-config.ts";

/** For one server, until it has said whether it is the primary. */
const CONNECT_MS = 3000;
/** For the last message to the server. */
const END_MS = 1000;

/** connection_exception of the class that a client reports itself. */
const UNABLE_TO_CONNECT = "08001";
/** read_only_sql_transaction. */
const STANDBY = "25006";

/**
 * Asks each server once, beginning with the current one of `servers`; the one that accepts writes is the current one afterwards. Rejects with an error
 * that names the failure of each.
 */
export async function connectPrimary(
  servers: Servers,
  options: SessionOptions,
  createSocket: () => Socket = () => new Socket(),
): Promise<Client> {
  const failures: Error[] = [];
  for (let i = 0; i < servers.count; i++) {
    try {
      return await connect(servers.current, options, createSocket());
    } catch (error) {
      failures.push(error instanceof Error ? error : new Error(String(error)));
      servers.next();
    }
  }
  throw summarise(failures);
}

async function connect(url: string, options: SessionOptions, socket: Socket): Promise<Client> {
  const client = new Client({ ...sessionConfig(options), connectionString: url, stream: () => socket });
  // Without a listener an error would be an uncaught exception. The running statement reports it.
  client.on("error", () => undefined);
  const cancel = afterAwakeTime(CONNECT_MS, () => socket.destroy(new NoAnswerError()));
  try {
    await client.connect();
    await requirePrimary(client);
    return client;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    cancel();
  }
}

/** A standby accepts connections, but no writes. */
async function requirePrimary(client: Client): Promise<void> {
  const { rows } = await client.query<{ transaction_read_only: string }>("SHOW transaction_read_only");
  if (rows[0]?.transaction_read_only === "off") return;
  throw Object.assign(new Error("the server is a standby and accepts no writes"), { code: STANDBY });
}

/** Ends a session in bounded time, also with a server that does not answer. Never rejects. */
export async function endClient(client: Client): Promise<void> {
  const cancel = afterAwakeTime(END_MS, () => client.connection.stream.destroy());
  // The connection was broken already; the server ends the session.
  await client.end().catch(() => undefined);
  cancel();
}

/** A wrong password is the reason to report, whatever the other servers say: waiting does not help. */
function summarise(failures: readonly Error[]): Error {
  const [first = new Error("no server is configured")] = failures;
  const mistake = failures.find((failure) => !isUnavailable(failure));
  if (mistake !== undefined || failures.length < 2) return mistake ?? first;
  const full = failures.find(hasNoRoom) as { readonly code?: string } | undefined;
  const message = `no server accepts writes: ${failures.map(describeFailure).join("; ")}`;
  return Object.assign(new Error(message, { cause: first }), { code: full?.code ?? UNABLE_TO_CONNECT });
}

/** The error of a host with several addresses has a code and no message. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || ((error as NodeJS.ErrnoException).code ?? "no answer");
}

class NoAnswerError extends Error {
  readonly code = "ETIMEDOUT";

  constructor() {
    super(`the server did not answer within ${CONNECT_MS / 1000} s`);
  }
}
