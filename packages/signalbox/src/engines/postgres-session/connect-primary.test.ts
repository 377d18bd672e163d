import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import {
  openTestPostgres,
  type TestPostgres,
  type TestStandby,
} from "../../../../../test/support/test-postgres.ts";
import { connectPrimary, endClient } from "./connect-primary.ts";
import { isLocked, isLost, isUnavailable } from "./failure.ts";
import { Servers } from "./servers.ts";
import type { SessionOptions } from "./session-config.ts";

const SESSION: SessionOptions = { name: "test", statementMs: 600_000 };
const AWAY = "127.0.0.1:1";

let primary: TestPostgres;
let standby: TestStandby;
beforeAll(async () => {
  primary = await openTestPostgres();
  standby = await primary.openStandby();
});
afterAll(async () => {
  await standby.drop();
  await primary.drop();
});

const hostOf = (server: TestPostgres) => new URL(server.url).host;
const serversAt = (...hosts: string[]) => new Servers(`postgres://postgres@${hosts.join(",")}/postgres`);

async function connect(servers: Servers, options: SessionOptions = SESSION) {
  const client = await connectPrimary(servers, options);
  onTestFinished(() => endClient(client));
  return client;
}

/** Accepts connections and never answers. */
async function openSilentServer(): Promise<string> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => sockets.push(socket)).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it.each([
  ["is away", () => AWAY],
  ["is a standby", () => hostOf(standby)],
  ["does not answer", openSilentServer],
])("finds the primary at the first attempt if the server before it %s", async (_, before) => {
  const servers = serversAt(await before(), hostOf(primary));
  const client = await connect(servers);
  const { rows } = await client.query("SELECT inet_server_port()::text AS port");
  expect(rows).toEqual([{ port: new URL(primary.url).port }]);
  // The next connection begins there.
  expect(new URL(servers.current).host).toBe(hostOf(primary));
});

it("reports what each server has said if none accepts writes, as a reason to try again", async () => {
  const failure: unknown = await connect(serversAt(AWAY, hostOf(standby))).catch((error: unknown) => error);
  expect(failure).toMatchObject({
    message: `no server accepts writes: connect ECONNREFUSED ${AWAY}; the server is a standby and accepts no writes`,
  });
  expect(isUnavailable(failure)).toBe(true);
});

it("reports a mistake of the configuration rather than a server that is away", async () => {
  const servers = new Servers(`postgres://postgres@${AWAY},${hostOf(primary)}/missing`);
  const failure: unknown = await connect(servers).catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: "3D000" });
  expect(isUnavailable(failure)).toBe(false);
});

it("each session has limits of time in the server", async () => {
  const client = await connect(serversAt(hostOf(primary)), { name: "test", statementMs: 7000 });
  const { rows } = await client.query<{ name: string; setting: string }>(
    `SELECT name, setting FROM pg_settings WHERE name IN
       ('idle_in_transaction_session_timeout', 'lock_timeout', 'statement_timeout', 'synchronous_commit', 'tcp_keepalives_idle')`,
  );
  expect(Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))).toEqual({
    idle_in_transaction_session_timeout: "2000",
    lock_timeout: "2500",
    statement_timeout: "7000",
    synchronous_commit: "on",
    tcp_keepalives_idle: "10",
  });
});

it("the server ends a transaction whose client is silent, and a statement that waits for its lock goes on", async () => {
  const silent = await connect(serversAt(hostOf(primary)));
  await silent.query("BEGIN; SELECT pg_advisory_xact_lock(1)");
  const waiting = await connect(serversAt(hostOf(primary)));
  // A pause of the machine can end the first wait.
  const lock = () => waiting.query("SELECT pg_advisory_xact_lock(1)");
  await lock().catch((error: unknown) => (isLocked(error) ? lock() : Promise.reject(error as Error)));
  const failure: unknown = await silent.query("SELECT 1").catch((error: unknown) => error);
  expect(isLost(failure)).toBe(true);
});

it("a statement that waits for a lock of a transaction that goes on is refused", async () => {
  const busy = await connect(serversAt(hostOf(primary)));
  await busy.query("BEGIN; SELECT pg_advisory_xact_lock(2)");
  const running = busy.query("SELECT pg_sleep(600)").catch(() => undefined);
  const waiting = await connect(serversAt(hostOf(primary)));
  const failure: unknown = await waiting
    .query("SELECT pg_advisory_xact_lock(2)")
    .catch((error: unknown) => error);
  expect(isLocked(failure)).toBe(true);
  await waiting.query(
    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted",
  );
  await running;
});
