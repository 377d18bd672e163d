/** Uncaught errors in agent code and in the server's own code, in a real server process. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { patiently } from "../support/patience.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { sendRequest } from "../support/send-request.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";

const MODULE = join(import.meta.dirname, "../fixtures/careless-agent.ts");

let dataDir: string;
/** One until an error ends it, then another. */
let server: ServerProcess;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "signalbox-uncaught-"));
  await writeFile(
    join(dataDir, "signalbox.config.json"),
    JSON.stringify(patiently({ agents: { modules: [MODULE] } })),
  );
  // Loaded into the process from outside; its stack trace points into the server's own folder.
  const intruder = join(dataDir, "intruder.mjs");
  const source = join(import.meta.dirname, "../../packages/signalbox/src/engines/turn-runtime/turn.ts");
  await writeFile(
    intruder,
    `import vm from "node:vm";
     process.on("SIGUSR2", vm.runInThisContext("() => setTimeout(() => { throw new Error('half done') })", { filename: ${JSON.stringify(source)} }));`,
  );
  server = await start({ NODE_OPTIONS: `--import ${intruder}` });
});
afterAll(async () => {
  await server.kill();
  await rm(dataDir, { recursive: true, force: true });
});

function start(env: Record<string, string> = {}): Promise<ServerProcess> {
  return startServerProcess(["--data-dir", dataDir], {
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN, ...env },
    cwd: dataDir,
  });
}

async function rpc(method: string, args: readonly unknown[] = [], instance = "x"): Promise<unknown> {
  const path = `/agents/careless-agent/${instance}/rpc/${method}`;
  const { status, body } = await sendRequest(server, "POST", path, args);
  return status === 200 ? body.result : status;
}

async function uncaught(): Promise<Record<string, number>> {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  const found = text.matchAll(/^signalbox_uncaught_errors_total\{kind="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...found].map(([, kind = "", count]) => [kind, Number(count)]));
}

it("the server continues after uncaught errors of every kind in an agent and counts them", async () => {
  for (const method of [
    "throwInTimer",
    "throwInTick",
    "rejectWithoutHandler",
    "rejectNothing",
    "emitError",
    "failSocket",
    "writeTooLate",
  ])
    expect(await rpc(method)).not.toBe(500);
  await expect.poll(uncaught).toEqual({ exception: 5, rejection: 2 });

  expect(await rpc("ping")).toBe("pong");
  expect(await rpc("ping", [], "another")).toBe("pong");
  const body = { resource_type: "worker", resource_id: "w", tags: { a: "1" } };
  const tagged = await sendRequest(server, "PUT", "/accounts/default/tags", body);
  expect([tagged.status, (await fetch(`${server.url}/readyz`)).status]).toEqual([200, 200]);
  for (const text of ["thrown in a timer of an agent", "emitted by an agent without a listener"])
    expect(server.stderr()).toContain(text);
});

it("a flood of errors writes few log lines", async () => {
  const before = await uncaught();
  await rpc("throwInTimer", [2000]);
  await expect.poll(uncaught).toEqual({ ...before, exception: (before["exception"] ?? 0) + 2000 });
  expect(server.stderr().split("thrown in a timer").length).toBeLessThan(40);
  expect(await rpc("ping")).toBe("pong");
});

it("an uncaught error in the server's own code stops the server cleanly with a failure code", async () => {
  // When its output has been read, too.
  const exit = once(server.child, "close");
  process.kill(server.pid, "SIGUSR2");
  expect(await exit).toEqual([1, null]);
  expect(server.stderr()).toContain("half done");
  expect(server.stderr()).toContain("stopping");
});

it("the server continues if the reader of its log is gone", async () => {
  server = await start();
  server.child.stderr.destroy();
  await rpc("throwInTimer", [20]);
  await expect.poll(uncaught).toEqual({ exception: 20, rejection: 0 });
  expect(await rpc("ping")).toBe("pong");
  expect(await server.end("SIGTERM")).toBe(0);
});
