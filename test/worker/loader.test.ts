/** Programs that a worker loads at run time. What hostile ones can do: loader-hostile.long.test.ts. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { askingLoader, HANDLER } from "./support/loader-client.ts";
import { startWorker, type WorkerServer } from "./support/worker-server.ts";

const MAX_PROGRAMS = 3;

let server: WorkerServer;
beforeAll(async () => {
  server = await startWorker("loader/src/server.ts", {
    env: { PARENT_SECRET: "of the process" },
    file: {
      agents: {
        access: "worker",
        loader: { maxPrograms: MAX_PROGRAMS, idleMs: 1000, memoryMb: 64, cpuMs: 500 },
      },
    },
  });
});
afterAll(() => server.remove());

const { ask, evaluate, post } = askingLoader(() => server.url);

test("a program is loaded with its modules, and answers requests and calls", async () => {
  expect(await ask(HANDLER, { env: { NAME: "loaded" } })).toEqual({
    value: { status: 200, text: "POST a body loaded" },
  });
  const modules = {
    "src/main.js": `import { WorkerEntrypoint, env } from "cloudflare:workers";
      import text from "./note.txt"; import json from "../data.json"; import bytes from "../bytes.bin";
      import common from "../old.cjs"; import { AsyncLocalStorage } from "node:async_hooks"; import { join } from "path";
      import { double } from "lib.js";
      export class Named extends WorkerEntrypoint {
        go(value) { return [text, json.a, new Uint8Array(bytes)[1], common.name, double(value), join("a", "b"),
          typeof AsyncLocalStorage, env.NAME, this.ctx.props.id]; } }
      export default {};`,
    "src/note.txt": { text: "a note" },
    "data.json": { json: { a: [1] } },
    "bytes.bin": { data: [1, 2] },
    "old.cjs": { cjs: `exports.name = require("./older.cjs")("/x/y");` },
    "older.cjs": `module.exports = require("node:path").basename;`,
    "lib.js": "export const double = (value) => value * 2;",
  };
  const question = { main: "src/main.js", entrypoint: "Named", method: "go", args: [21], props: { id: 7 } };
  expect(await post("/", { modules, ...question, env: { NAME: "n" } })).toEqual({
    value: ["a note", [1], 2, "y", 42, "a/b", "function", "n", 7],
  });
});

test("what is wrong with the code of a program is said", async () => {
  const wrong = async (question: object) => (await ask(HANDLER, question)).error;
  expect(await wrong({ modules: { "main.py": "print()" }, main: "main.py" })).toMatch(
    /Python, which is not available/,
  );
  expect(await wrong({ modules: { "main.js": { py: "" } } })).toMatch(/Python/);
  expect(await wrong({ main: "other.js" })).toMatch(/"other.js" is not among the modules/);
  expect(await wrong({ modules: { "main.js": HANDLER, "a.txt": "text" } })).toMatch(/"a.txt" is a text/);
  expect(await wrong({ code: { compatibilityDate: null } })).toMatch(/compatibilityDate/);
  expect(await wrong({ entrypoint: "Missing" })).toMatch(/no entrypoint "Missing"/);
  expect((await ask("export default {")).error).toMatch(/^SyntaxError/);
  expect((await ask(`throw new Error("at the start");`)).error).toBe("Error: at the start");
});

test("bindings of the parent are called through the boundary, with functions, objects and errors", async () => {
  expect(await evaluate("await env.TOOLS.add(1, 2)")).toEqual({ value: 3 });
  expect(await evaluate("await env.TOOLS.apply(async (value) => value * 3, 5)")).toEqual({ value: 15 });
  expect(
    await evaluate(
      "await (async () => { const c = await env.TOOLS.counter(); await c.next(); return c.next(); })()",
    ),
  ).toEqual({ value: 2 });
  expect(await evaluate("await env.STORE.value()")).toEqual({ value: "of an object" });
  expect(await evaluate("env.TOOLS.fail()")).toEqual({ error: "RangeError: too far", code: 42 });
});

test("bodies stream in both directions", async () => {
  const main = `export default { fetch: (request) => new Response(request.body.pipeThrough(new TransformStream({
    transform(chunk, controller) { controller.enqueue(chunk); controller.enqueue(chunk); } }))) };`;
  expect(await ask(main)).toEqual({ value: { status: 200, text: "a bodya body" } });
});

test("requests of a program go where globalOutbound says", async () => {
  const target = createServer((_request, response) => response.end("of the network"));
  await new Promise<void>((resolve) => target.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void target.close());
  const url = `http://127.0.0.1:${(target.address() as AddressInfo).port}/`;
  const request = `await (await fetch(args[0], { method: "POST", body: "sent" })).text()`;
  expect((await evaluate(request, { args: [url] })).error).toMatch(/no access to the network/);
  expect(await evaluate(request, { args: [url], outbound: "inherited" })).toEqual({
    value: "of the network",
  });
  const { value } = await evaluate(request, { args: [url], outbound: "service" });
  expect(JSON.parse(String(value))).toEqual({ via: "outbound", url, method: "POST", body: "sent" });
});

test("calls of one id share a program, and its memory", async () => {
  const main = `import { WorkerEntrypoint } from "cloudflare:workers"; let count = 0;
    export default class extends WorkerEntrypoint { next() { return ++count; } }`;
  const next = (id?: string) => ask(main, { method: "next", ...(id === undefined ? {} : { id }) });
  expect(await next("shared")).toEqual({ value: 1 });
  expect(await next("shared")).toEqual({ value: 2 });
  expect(await next()).toEqual({ value: 1 });
  expect(await next()).toEqual({ value: 1 });
});

test("an error in a timer ends none of the calls", async () => {
  const late = `await new Promise((resolve) => { setTimeout(resolve, 20, "alive"); setTimeout(() => { throw new Error("late"); }, 1); })`;
  expect(await evaluate(late)).toEqual({ value: "alive" });
});

test("an object loads programs", async () => {
  expect(await post("/object", null)).toEqual({ value: "for an object" });
});

const APP = `import { DurableObject } from "cloudflare:workers";
  export class App extends DurableObject {
    #calls = 0;
    constructor(ctx, env) {
      super(ctx, env);
      ctx.blockConcurrencyWhile(async () => { ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS item (name TEXT)"); });
    }
    async add(name) { this.ctx.storage.sql.exec("INSERT INTO item VALUES (?)", name); await this.ctx.storage.put("last", { name });
      return [++this.#calls, String(this.ctx.id)]; }
    async all() { return [[...this.ctx.storage.sql.exec("SELECT name FROM item ORDER BY name")].map(({ name }) => name),
      await this.ctx.storage.get("last"), [...this.ctx.storage.kv.list()].length]; }
    undo() { try { this.ctx.storage.transactionSync(() => { this.ctx.storage.sql.exec("INSERT INTO item VALUES ('undone')"); throw new Error("no"); }); }
      catch (error) { return error.message; } }
    wrong() { try { this.ctx.storage.sql.exec("SELECT * FROM missing"); } catch (error) { return error.message; } }
    loop() { this.ctx.storage.sql.exec("INSERT INTO item VALUES ('half')"); for (;;); }
    abort() { this.ctx.storage.kv.put("aborted", 1); this.ctx.abort("by itself"); }
    async sync(name) { this.ctx.storage.sql.exec("INSERT INTO item VALUES (?)", name); await this.ctx.storage.sync();
      this.ctx.storage.sql.exec("DELETE FROM item WHERE name = ?", name); await this.ctx.storage.sync(); return "stored"; }
    alarm() {}
    arm() { return this.ctx.storage.setAlarm(1e15); }
  }
  export default {};`;

test("a class of a program is the class of a facet, whose database the server has", async () => {
  const facet = (name: string, ...call: unknown[]) => post("/facet", [name, APP, ...call]);
  expect(await facet("one", "add", "b")).toEqual({ value: [1, "one"] });
  expect(await facet("one", "add", "a")).toEqual({ value: [2, "one"] });
  expect(await facet("two", "all")).toEqual({ value: [[], null, 0] });
  expect(await facet("one", "undo")).toEqual({ value: "no" });
  expect(await facet("one", "sync", "d")).toEqual({ value: "stored" });
  expect((await facet("one", "wrong")).value).toMatch(/no such table: missing/);
  expect((await facet("one", "arm")).error).toMatch(/Facets currently cannot set alarms/);
  expect((await facet("one", "missing")).error).toMatch(/does not implement the method "missing"/);
  expect(await facet("one", "all")).toEqual({ value: [["a", "b"], { name: "a" }, 1] });
  // The program ends in the middle of an event: what the event wrote is undone, and the next one finds what was stored before.
  expect((await facet("one", "loop")).error).toMatch(/CPU time limit|has ended/);
  expect(await facet("one", "all")).toEqual({ value: [["a", "b"], { name: "a" }, 1] });
  expect((await facet("one", "abort")).error).toMatch(/by itself/);
  expect(await facet("one", "add", "c")).toEqual({ value: [1, "one"] });
});

test("a facet whose object could not be constructed is constructed again for its next event", async () => {
  const main = `import { DurableObject } from "cloudflare:workers"; let count = 0;
    export class App extends DurableObject {
      constructor(ctx, env) { super(ctx, env); if (++count === 1) throw new RangeError("the first"); }
      count() { return count; } }
    export default {};`;
  expect(await post("/facet", ["again", main, "count"])).toEqual({ error: "RangeError: the first" });
  expect(await post("/facet", ["again", main, "count"])).toEqual({ value: 2 });
});

test("tail workers receive what a call wrote and threw", async () => {
  const main = `export default { fetch() { console.warn("a", { b: 1 }); throw new TypeError("thrown"); } };`;
  expect(await ask(main, { tails: true })).toEqual({ error: "TypeError: thrown" });
  await expect
    .poll(() => post("/traces", null))
    .toMatchObject([
      {
        outcome: "exception",
        logs: [{ level: "warn", message: ["a { b: 1 }"] }],
        exceptions: [{ name: "TypeError", message: "thrown" }],
      },
    ]);
});

test("an endless loop ends its program only", async () => {
  const loop = "export default { fetch() { for (;;); } };";
  expect(await ask(loop, { limits: { cpuMs: 200 } })).toEqual({
    error: "Error: Worker exceeded CPU time limit.",
  });
  expect(await ask("await 0; for (;;);", { limits: { cpuMs: 200 } })).toEqual({
    error: "Error: Worker exceeded CPU time limit.",
  });
  expect(await ask(HANDLER)).toMatchObject({ value: { status: 200 } });
});
