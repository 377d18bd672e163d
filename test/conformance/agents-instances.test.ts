/** Instances: one per name, unusual names, hibernation, limits, storage rules: interface section 2.4. */
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RawClient, TEST_AGENTS } from "../support/agents.ts";
import { startServerProcess } from "../support/server-process.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const WORK_AGENTS = join(import.meta.dirname, "../fixtures/work-agents.ts");

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ file: { agents: { modules: [TEST_AGENTS, WORK_AGENTS] } } });
});
afterAll(() => server.stop());

const call = (on: TestServer, path: string, ...args: unknown[]) => on.api("POST", `/agents/${path}`, args);

const inMemory = async (on: TestServer, agent: string) =>
  (await on.api("GET", `/accounts/default/agents/${agent}/instances`)).body.result
    .filter((instance: { in_memory: boolean }) => instance.in_memory)
    .map((instance: { name: string }) => instance.name);

describe("an instance", () => {
  it("concurrent first requests create one instance", async () => {
    const answers = await Promise.all(
      Array.from({ length: 40 }, () => call(server, "counter/one/rpc/increment", 1)),
    );
    expect(answers.map((answer) => answer.body.result).toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 40 }, (_, i) => i + 1),
    );
    expect((await call(server, "counter/one/rpc/startCount")).body.result).toBe(1);
  });

  it("a failed start is reported to every waiting caller, and the next request tries again", async () => {
    const answers = await Promise.all([1, 2, 3].map(() => call(server, "moody/m/rpc/hello")));
    expect(answers.map((answer) => answer.status)).toEqual([500, 500, 500]);
    expect(answers[0]?.body.errors[0].message).toBe("not in the mood");
    const client = await new RawClient(`${server.url}/agents/moody/m`).opened();
    expect(await client.closed()).toBe(1011);
    // The instance can still be inspected.
    expect((await server.api("GET", "/accounts/default/agents/moody/instances/m")).status).toBe(200);
  });

  it("the data of an instance survives a restart", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "signalbox-restart-"));
    const options = { dataDir, file: { agents: { modules: [TEST_AGENTS] } } };
    const first = await startTestServer(options);
    await call(first, "counter/kept/rpc/increment", 5);
    await first.stop();
    const second = await startTestServer(options);
    expect((await call(second, "counter/kept/rpc/read")).body.result).toEqual({ count: 5, hits: 1 });
    await second.stop();
    await rm(dataDir, { recursive: true, force: true });
  });
});

/** Without `fetch`, which would resolve `..` in the path. */
async function rawCall(name: string, by: number): Promise<unknown> {
  const message = request(`${server.url}/`, {
    path: `/agents/counter/${encodeURIComponent(name)}/rpc/increment`,
    method: "POST",
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  }).end(JSON.stringify([by]));
  const [response] = (await once(message, "response")) as [IncomingMessage];
  return ((await json(response)) as { result: unknown }).result;
}

describe("names", () => {
  const hostile = [
    "..",
    "../x",
    "../../etc/passwd",
    "a/b",
    "a%2Fb",
    "Case",
    "case",
    "CASE",
    "ünïcödé",
    "u\u0308",
    "ü",
    "😀",
    " leading and trailing ",
    "n".repeat(256),
    "😀".repeat(256),
    "'; DROP TABLE agent_instance; --",
    "constructor",
    "__proto__",
    "a\\b",
    "con.txt",
    "name?x=1#y",
  ];

  it("unusual names are safe and distinct", async () => {
    for (const [i, name] of hostile.entries()) {
      expect([name, await rawCall(name, i + 1000)]).toEqual([name, i + 1000]);
    }
    const { body } = await server.api("GET", "/accounts/default/agents/counter/instances?limit=1000");
    const listed = new Set(body.result.map((instance: { name: string }) => instance.name));
    expect(hostile.filter((name) => !listed.has(name))).toEqual([]);
    const files = await readdir(join(server.dataDir, "agents"), { recursive: true });
    expect(
      files.filter(
        (file) =>
          !/^(journal|spare-wal|live-wal|[0-9a-f]{2})(\/([0-9a-f]{40}\.db(-wal)?|\d+(\.log)?))?$/.test(file),
      ),
    ).toEqual([]);
  });

  it.each([
    ["empty", ""],
    ["257 characters", "n".repeat(257)],
    ["5,000 characters", "n".repeat(5000)],
    ["a NUL", "a%00b"],
    ["a line break", "a%0Ab"],
    ["broken encoding", "a%zzb"],
    ["broken UTF-8", "a%ffb"],
  ])("an invalid name is refused: %s", async (_title, name) => {
    const answer = await server.api("POST", `/agents/counter/${name}/rpc/read`, []);
    expect(answer.status).toBe(400);
  });

  it("names are percent-decoded once", async () => {
    await call(server, "counter/a%2520b/rpc/increment", 1);
    const { body } = await server.api(
      "GET",
      `/accounts/default/agents/counter/instances?search=${encodeURIComponent("a%20b")}`,
    );
    expect(body.result.map((instance: { name: string }) => instance.name)).toEqual(["a%20b"]);
  });
});

describe("hibernation", () => {
  it("idle instances leave memory while their sockets stay open; waking runs onStart once", async () => {
    const sleepy = await startTestServer({ file: { agents: { modules: [TEST_AGENTS], idleTimeoutMs: 60 } } });
    const client = await new RawClient(`${sleepy.url}/agents/counter/s?_pk=c`).opened();
    await client.greeted();
    await client.call("increment", 3);
    await waitUntil(
      () => inMemory(sleepy, "counter"),
      (names) => names.length === 0,
    );
    expect(client.closeCode).toBeUndefined();
    expect(
      (await sleepy.api("GET", "/accounts/default/agents/counter/instances/s/connections")).body.result,
    ).toHaveLength(1);
    // The client has sent nothing. A call loads the instance with new memory and the stored data.
    expect((await client.call("startCount")).result).toBe(1);
    expect((await client.call("read")).result).toEqual({ count: 3, hits: 1 });
    // A change after the wake-up reaches a socket opened before it.
    client.received.length = 0;
    await call(sleepy, "counter/s/rpc/increment", 4);
    expect(await client.next((frame) => frame.type === "cf_agent_state")).toMatchObject({
      state: { count: 7 },
    });
    client.close();
    await sleepy.stop();
  });

  it("the number of instances in memory is limited; the least recently used leave first", async () => {
    const small = await startTestServer({
      file: { agents: { modules: [TEST_AGENTS], maxActiveInstances: 5, idleTimeoutMs: 3_600_000 } },
    });
    for (let i = 0; i < 12; i++)
      expect((await call(small, `counter/n${i}/rpc/increment`, i)).status).toBe(200);
    const names = await waitUntil(
      () => inMemory(small, "counter"),
      (all) => all.length <= 5,
    );
    expect(names).toEqual(["n7", "n8", "n9", "n10", "n11"]);
    for (let i = 0; i < 12; i++)
      expect((await call(small, `counter/n${i}/rpc/read`)).body.result.count).toBe(i);
    await small.stop();
  });

  it("new instances are refused if the limit is reached and all instances are busy", async () => {
    const tiny = await startTestServer({
      file: { agents: { modules: [TEST_AGENTS], maxActiveInstances: 2 } },
    });
    const busy = [1, 2, 3].map((i) => call(tiny, `counter/b${i}/rpc/slow`, 2000, "x"));
    const statuses = [];
    for (const answer of await Promise.all([...busy, call(tiny, "counter/extra/rpc/read")]))
      statuses.push(answer.status);
    expect(statuses.filter((status) => status === 503).length).toBeGreaterThan(0);
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(1);
    // The server recovers.
    expect(
      (
        await waitUntil(
          () => call(tiny, "counter/extra/rpc/read"),
          (answer) => answer.status === 200,
        )
      ).status,
    ).toBe(200);
    await tiny.stop();
  });

  it("a due schedule wakes an idle instance", async () => {
    const sleepy = await startTestServer({ file: { agents: { modules: [WORK_AGENTS], idleTimeoutMs: 60 } } });
    await call(sleepy, "worker/w/rpc/plan", 1.2, "later");
    await waitUntil(
      () => inMemory(sleepy, "worker"),
      (names) => names.length === 0,
    );
    const ticks = async () =>
      (
        await sleepy.api("POST", "/accounts/default/agents/worker/instances/w/sql", {
          sql: "SELECT what FROM done",
        })
      ).body.result.rows;
    expect(await waitUntil(ticks, (rows) => rows.length > 0)).toEqual([{ what: "tick later" }]);
    await sleepy.stop();
  });
});

describe("overload", () => {
  it("calls to an overloaded instance are answered 503 with Retry-After until the load is gone", async () => {
    const narrow = await startTestServer({
      file: { agents: { modules: [TEST_AGENTS], maxWaitingTurns: 3 } },
    });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => call(narrow, "counter/o/rpc/slow", 20, String(i))),
    );
    const refused = answers.filter((answer) => answer.status === 503);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0]?.headers.get("retry-after")).toBe("1");
    expect((await call(narrow, "counter/o/rpc/increment", 1)).body.result).toBe(1);
    await narrow.stop();
  });
});

describe("an agent's own SQL", () => {
  const run = (text: string) => call(server, "counter/sql/rpc/runSql", text);

  it("several statements in one text run in order", async () => {
    expect(
      (await run("CREATE TABLE a (x); INSERT INTO a VALUES (1), (2); -- done\nSELECT sum(x) AS s FROM a;"))
        .body.result,
    ).toEqual([{ s: 3 }]);
  });

  it.each([
    ["ATTACH DATABASE 'other.db' AS other", "attaching"],
    ["DETACH DATABASE main", "detaching"],
    ["COMMIT", "transactions are the runtime's"],
    ["SAVEPOINT x", "transactions are the runtime's"],
    ["PRAGMA synchronous = OFF", "PRAGMA synchronous is not allowed"],
    ["PRAGMA writable_schema = ON", "not allowed"],
    ["PRAGMA data_version = 3", "PRAGMA data_version with 3 is not allowed"],
    ["PRAGMA index_info", "PRAGMA index_info needs a value"],
    ["DELETE FROM _signalbox_queue", "belongs to the runtime"],
    ["DROP TABLE _SIGNALBOX_STATE", "belongs to the runtime"],
    ["CREATE TRIGGER t AFTER INSERT ON _signalbox_queue BEGIN SELECT 1; END", "belongs to the runtime"],
    ["ALTER TABLE _signalbox_meta RENAME TO x", "belongs to the runtime"],
    ["SELECT load_extension('x')", "not"],
    ["VACUUM INTO 'copy.db'", ""],
    ["SELEKT", "syntax error"],
  ])("this statement is refused: %s", async (text, reason) => {
    await call(server, "counter/sql/rpc/haveWork");
    const answer = await run(text);
    expect(answer.status).toBe(500);
    expect(answer.body.errors[0].message).toContain(reason);
  });

  it("the schema and the runtime's tables can be read", async () => {
    expect((await run("PRAGMA table_info(hits)")).body.result).toHaveLength(2);
    expect((await run("SELECT value FROM _signalbox_meta WHERE key = 'name'")).body.result).toEqual([
      { value: "sql" },
    ]);
  });
});

describe("modules", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "signalbox-modules-"));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const write = async (name: string, text: string) => {
    const path = join(folder, name);
    await writeFile(path, text);
    return path;
  };
  const failure = async (name: string, text: string): Promise<string> => {
    const path = await write(name, text);
    const error: unknown = await startTestServer({ file: { agents: { modules: [path] } } }).then(
      (started) => started.stop(),
      (reason: unknown) => reason,
    );
    return error instanceof Error ? error.message : "started";
  };

  it("modules load from any folder, with their own imports, TypeScript syntax and decorators", async () => {
    await write("helper.ts", "export enum Colour { Red = 'red' }");
    const path = await write(
      "agent.ts",
      `import { Agent, callable, type Connection } from "signalbox";
       import { Colour } from "./helper.ts";
       const later = await Promise.resolve("later");
       export default class MyOwnAgent extends Agent {
         constructor(...args: ConstructorParameters<typeof Agent>) { super(...args); }
         @callable({ description: "says so" }) colour(c?: Connection) { return [Colour.Red, later, this.name]; }
       }`,
    );
    const own = await startServerProcess(["--data-dir", join(folder, "data"), "--agents", path], {
      env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
      cwd: folder,
    });
    const response = await fetch(`${own.url}/agents/my-own-agent/x/rpc/colour?token=${ROOT_TOKEN}`, {
      method: "POST",
    });
    expect(await response.json()).toMatchObject({ result: ["red", "later", "x"] });
    expect(await own.end("SIGTERM")).toBe(0);
  });

  it("a broken module stops the start with one line that names the module", async () => {
    const messages = [
      await failure("syntax.ts", "export class X extends {"),
      await failure("throws.ts", "throw new Error('at load time');"),
      await failure("none.ts", "export const x = 1;"),
      await failure("imports.ts", "import './absent.ts';"),
      await failure(
        "callable.ts",
        `import { Agent } from "signalbox"; export class Y extends Agent { static callable = ["setState"]; }`,
      ),
      await failure(
        "twice.ts",
        `import { Agent, callable } from "signalbox"; export class Z extends Agent { @callable() static no() {} }`,
      ),
    ];
    expect(messages.map((message) => message.includes("\n"))).toEqual(messages.map(() => false));
    expect(messages[0]).toMatch(/syntax\.ts: cannot be loaded: .*syntax\.ts:1:/);
    expect(messages[1]).toMatch(/throws\.ts: cannot be loaded: throws\.ts:1:\d+: at load time$/);
    expect(messages[2]).toContain("exports no class that extends Agent");
    expect(messages[3]).toContain("absent.ts");
    expect(messages[4]).toContain('static callable names "setState"');
    expect(messages[5]).toContain("@callable()");
  });

  it("a missing module or an agent defined twice stops the start", async () => {
    const missing = startTestServer({ file: { agents: { modules: ["./no-such-file.ts"] } } });
    await expect(missing).rejects.toThrow("./no-such-file.ts: no such file");
    const one = await write(
      "one.ts",
      `import { Agent } from "signalbox"; export class Same extends Agent {}`,
    );
    const two = await write(
      "two.ts",
      `import { Agent } from "signalbox"; export class Same extends Agent {}`,
    );
    await expect(startTestServer({ file: { agents: { modules: [one, two] } } })).rejects.toThrow(
      '"same" is already defined',
    );
  });
});

describe("metrics", () => {
  it("turns, instances, sockets and syncs are counted", async () => {
    await call(server, "counter/metric/rpc/increment", 1);
    const text = await (
      await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${ROOT_TOKEN}` } })
    ).text();
    for (const name of [
      "turns_total",
      "turn_duration_seconds",
      "sync_duration_seconds",
      "instances",
      "sockets",
      "starts_total",
    ]) {
      expect(text).toContain(`signalbox_agent_${name}`);
    }
    expect(text).toMatch(/signalbox_agent_turns_total\{kind="rpc",outcome="ok"\} \d+/);
  });
});
