/** Loaded programs that do what they should not: the server goes on, and they reach nothing. */
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { askingLoader, HANDLER } from "./support/loader-client.ts";
import { startWorker, type WorkerServer } from "./support/worker-server.ts";

const MAX_PROGRAMS = 3;

let server: WorkerServer;
beforeAll(async () => {
  server = await startWorker("loader/src/server.ts", {
    nodes: 1,
    env: { PARENT_SECRET: "of the process" },
    file: {
      agents: {
        access: "worker",
        loader: { maxPrograms: MAX_PROGRAMS, idleMs: 1000, memoryMb: 64, cpuMs: 20_000 },
      },
    },
  });
});
afterAll(() => server.remove());

const { ask, evaluate, post } = askingLoader(() => server.url);

test("a program that takes too much memory fails, in its heap and in buffers", async () => {
  const heap = "export default { fetch() { const all = []; for (;;) all.push({ all, more: [1, 2, 3] }); } };";
  expect(await ask(heap)).toEqual({ error: "Error: Worker exceeded memory limit." });
  const buffers =
    "export default { fetch() { const all = []; for (;;) all.push(new Uint8Array(10_000_000).fill(1)); } };";
  expect((await ask(buffers)).error).toMatch(/allocation failed|memory limit/);
});

test("a program cannot end its process, and reaches no file, variable, process or module outside of it", async () => {
  expect((await evaluate("process.exit(1)")).error).toMatch(/not available/);
  expect(await evaluate("[process.env, env.PARENT_SECRET, env.SECRET, Object.keys(env)]")).toEqual({
    value: [{}, null, null, ["TOOLS", "STORE"]],
  });
  for (const name of [
    "node:fs",
    "fs",
    "node:net",
    "node:child_process",
    "node:module",
    "node:vm",
    "node:worker_threads",
    "node:http",
    "node:dns",
    "node:inspector",
    "node:sqlite",
    "file:///etc/passwd",
    "data:text/javascript,1",
    "signalbox",
  ])
    expect((await evaluate(`await import(${JSON.stringify(name)})`, { id: "imports" })).error, name).toMatch(
      /No such module/,
    );
  for (const code of [
    `eval("1")`,
    `new Function("return 1")()`,
    `(async () => {}).constructor("return 1")()`,
  ])
    expect((await evaluate(code)).error).toMatch(/Code generation from strings/);
});

test("what a program finds of Node's own objects is of no use to it", async () => {
  const main = `import { WorkerEntrypoint } from "cloudflare:workers"; import { EventEmitter } from "node:events";
    export default class extends WorkerEntrypoint { async go() {
      let found; const { emit } = EventEmitter.prototype;
      EventEmitter.prototype.emit = function (...args) { if ("reallyExit" in this) found = this; return Reflect.apply(emit, this, args); };
      process.emitWarning("a warning"); await new Promise((resolve) => setTimeout(resolve, 20));
      if (found === undefined) return ["not found"];
      const results = [];
      const attempt = async (work) => { try { results.push(String(await work())); } catch (error) { results.push("refused"); } };
      await attempt(() => found.kill(found.ppid, 0));
      await attempt(() => found.getBuiltinModule("node:net"));
      await attempt(() => found.binding("tcp_wrap"));
      await attempt(() => found.dlopen({}, "/x"));
      await attempt(() => globalThis[Symbol.for("undici.globalDispatcher.1")].request({ origin: "http://127.0.0.1", path: "/" }));
      return results; } }`;
  expect(await ask(main, { method: "go" })).toEqual({ value: Array.from({ length: 5 }, () => "refused") });
});

test("many ids have a bounded number of processes, and idle ones end", async () => {
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, i) => ask(HANDLER, { id: `many-${i}`, env: { NAME: `p${i}` } })),
  );
  expect(answers.map(({ value }) => (value as { text: string }).text)).toEqual(
    Array.from({ length: 12 }, (_, i) => `POST a body p${i}`),
  );
  expect(programs().length).toBeLessThanOrEqual(MAX_PROGRAMS);
  await expect.poll(() => programs().length).toBe(0);
});

test("a program that sleeps without giving up its thread is ended, though it uses no processor time", async () => {
  const sleep = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)";
  expect((await evaluate(sleep)).error).toBe("Error: The loaded program did not respond.");
});

test("a program keeps its process neither with work that never ends nor with a call that its caller has given up", async () => {
  await evaluate("ctx.waitUntil(new Promise(() => {}))");
  const before = programs();
  const caller = new AbortController();
  const never = {
    modules: { "main.js": "export default { fetch() { return new Promise(() => {}); } };" },
    abortable: true,
  };
  const asked = fetch(server.url, { method: "POST", body: JSON.stringify(never), signal: caller.signal });
  asked.catch(() => undefined);
  await expect.poll(() => programs().some((pid) => !before.includes(pid))).toBe(true);
  caller.abort();
  await expect.poll(() => programs().length).toBe(0);
});

test("requests that a program makes outside of its calls count, too", async () => {
  const main = `import { WorkerEntrypoint } from "cloudflare:workers"; import { AsyncResource } from "node:async_hooks";
    const outside = new AsyncResource("outside");
    export default class extends WorkerEntrypoint { async go() {
      const results = [];
      for (let i = 0; i < 3; i++) results.push(await outside.runInAsyncScope(() => fetch("http://other/")).then(({ status }) => status, String));
      return results; } }`;
  expect(await ask(main, { method: "go", limits: { subRequests: 2 }, outbound: "service" })).toEqual({
    value: [200, 200, "Error: Too many subrequests."],
  });
});

test("rows and entries that a class of a program reads at once are limited", async () => {
  const main = `import { DurableObject } from "cloudflare:workers";
    export class App extends DurableObject {
      rows(query) { return this.ctx.storage.sql.exec(query).toArray().length; }
      entries() { for (let i = 0; i < 5; i++) this.ctx.storage.kv.put("k" + i, new Uint8Array(8_000_000));
        try { return [...this.ctx.storage.kv.list()].length; } catch (error) { return error.message; } }
      async some() { return [...this.ctx.storage.kv.list({ limit: 1 })].length; } }
    export default {};`;
  const facet = (...call: unknown[]) => post("/facet", ["limited", main, ...call]);
  const series = (count: number, value: string) =>
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count}) SELECT ${value} FROM n`;
  expect(await facet("rows", series(1000, "i"))).toEqual({ value: 1000 });
  expect((await facet("rows", series(1e12, "i"))).error).toMatch(/more than 100000 rows/);
  expect((await facet("rows", series(1e12, "zeroblob(1000000)"))).error).toMatch(/33554432 bytes/);
  expect((await facet("entries")).value).toMatch(/The list has more than/);
  expect(await facet("some")).toEqual({ value: 1 });
});

test("programs end with the server, also one that never pauses", async () => {
  const other = await startWorker("loader/src/server.ts", { nodes: 1 });
  const stuck = { modules: { "main.js": "export default { fetch() { for (;;); } };" } };
  const asked = fetch(other.url, { method: "POST", body: JSON.stringify(stuck) }).catch(() => null);
  await expect.poll(() => programs(other.child.pid).length).toBe(1);
  const [pid] = programs(other.child.pid);
  other.child.kill("SIGKILL");
  await asked;
  await expect.poll(() => isRunning(pid ?? 0)).toBe(false);
  await other.remove();
});

/** The processes of loaded programs that a server has started. */
function programs(parent: number | undefined = server.child.pid): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => {
      if (!Number.isInteger(pid)) return false;
      const [, stat = ""] = read(`/proc/${pid}/stat`).split(") ");
      return Number(stat.split(" ")[1]) === parent && read(`/proc/${pid}/cmdline`).includes("--permission");
    });
}

function isRunning(pid: number): boolean {
  return read(`/proc/${pid}/cmdline`) !== "";
}

function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    // The process has ended.
    return "";
  }
}
