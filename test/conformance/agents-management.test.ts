/** Management of agents (decisions, section 5) and the `agents` commands. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RawClient, TEST_AGENTS } from "../support/agents.ts";
import { runCommand } from "../support/run-cli.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const WORK_AGENTS = join(import.meta.dirname, "../fixtures/work-agents.ts");
const BASE = "/accounts/default/agents";
const QUICK = { retry: { maxAttempts: 1, baseDelayMs: 1, maxDelayMs: 1 } };

let server: TestServer;
beforeAll(async () => {
  // The activity of an instance is shown while it is in memory: longer than a machine may pause between a call and a read.
  server = await startTestServer({
    file: { agents: { modules: [TEST_AGENTS, WORK_AGENTS], idleTimeoutMs: 3_600_000 } },
  });
});
afterAll(() => server.stop());

const call = (path: string, ...args: unknown[]) => server.api("POST", `/agents/${path}`, args);

describe("agents", () => {
  it("agents are listed with their callable methods", async () => {
    const { body } = await server.api("GET", BASE);
    const counter = body.result.find((agent: { name: string }) => agent.name === "counter");
    expect(counter).toMatchObject({ class_name: "Counter", is_built_in: false });
    expect(counter.callable).toContainEqual({
      name: "stream",
      description: null,
      streaming: true,
      parameters: [{ name: "count", optional: false, rest: false }],
    });
    expect(JSON.stringify(body)).not.toContain("fixtures");
  });

  it("reads need agents.read; SQL and destruction need agents.edit", async () => {
    const reader = await server.token(["agents.read"]);
    const stranger = await server.token(["tags.edit"]);
    expect((await server.api("GET", BASE, undefined, reader)).status).toBe(200);
    expect((await server.api("GET", BASE, undefined, stranger)).status).toBe(403);
    expect((await server.api("GET", BASE, undefined, null)).status).toBe(401);
    await call("counter/guarded/rpc/increment");
    const instance = `${BASE}/counter/instances/guarded`;
    expect((await server.api("POST", `${instance}/sql`, { sql: "SELECT 1" }, reader)).status).toBe(403);
    expect((await server.api("DELETE", instance, undefined, reader)).status).toBe(403);
    expect((await server.api("GET", instance, undefined, reader)).status).toBe(200);
  });

  it("every account has the same agents and its own instances", async () => {
    await server.api("POST", "/accounts", { id: "elsewhere" });
    const classes = (await server.api("GET", "/accounts/elsewhere/agents")).body.result;
    expect(classes).toContainEqual(expect.objectContaining({ name: "counter", instance_count: 0 }));
    expect((await server.api("GET", "/accounts/elsewhere/agents/counter/instances")).body.result).toEqual([]);
    expect((await server.api("GET", "/accounts/nowhere/agents")).status).toBe(404);
  });

  it("unknown agents and instances are 404", async () => {
    expect((await server.api("GET", `${BASE}/nobody/instances`)).body.errors[0].code).toBe(3001);
    expect((await server.api("GET", `${BASE}/counter/instances/not-there`)).body.errors[0].code).toBe(3003);
    // A read must not create an instance.
    const { body } = await server.api("GET", `${BASE}/counter/instances?search=not-there`);
    expect(body.result).toEqual([]);
  });
});

describe("instances", () => {
  it("instances are listed by name in pages and can be searched", async () => {
    const names = ["page-a", "page-b", "page-c", "page-d", "Page-E", "100%_page"];
    await Promise.all(names.map((name) => call(`plain-agent/${encodeURIComponent(name)}/rpc/hello`, "x")));
    const seen: string[] = [];
    for (let cursor: string | null = ""; cursor !== null;) {
      const { body } = await server.api(
        "GET",
        `${BASE}/plain-agent/instances?limit=2&cursor=${encodeURIComponent(cursor)}`,
      );
      seen.push(...body.result.map((instance: { name: string }) => instance.name));
      cursor = body.result_info.cursor;
    }
    expect(seen).toEqual(["100%_page", "Page-E", "page-a", "page-b", "page-c", "page-d"]);
    const search = async (text: string) =>
      (
        await server.api("GET", `${BASE}/plain-agent/instances?search=${encodeURIComponent(text)}`)
      ).body.result.map((instance: { name: string }) => instance.name);
    expect(await search("E-e")).toEqual(["Page-E"]);
    expect(await search("%_")).toEqual(["100%_page"]);
  });

  it("instances can be filtered by tags", async () => {
    await call("counter/tagged/rpc/increment");
    await call("counter/untagged/rpc/increment");
    const put = await server.api("PUT", "/accounts/default/tags", {
      resource_type: "agent",
      resource_id: "counter/tagged",
      tags: { team: "blue" },
    });
    expect(put.status).toBe(200);
    const { body } = await server.api("GET", `${BASE}/counter/instances?tag=team%3Dblue`);
    expect(body.result.map((instance: { name: string }) => instance.name)).toEqual(["tagged"]);
  });

  it("reading an instance does not count as activity", async () => {
    await call("counter/watched/rpc/increment");
    const read = (path = "") => server.api("GET", `${BASE}/counter/instances/watched${path}`);
    const { last_active_at } = (await read()).body.result;
    // At once: the events are in memory, and an instance stays there for a moment only.
    const paths = ["/events", "", "/queue", "/schedules", "/dead-letters"];
    const [{ body } = expect.fail()] = await Promise.all(paths.map(read));
    const kinds = body.result.map(({ detail }: { detail: { kind?: string } }) => detail.kind);
    expect(kinds).toContain("rpc");
    expect(kinds).not.toContain("inspect");
    expect((await read()).body.result.last_active_at).toBe(last_active_at);
  });

  it("an instance is shown with state, counts and activity, in memory and idle", async () => {
    const sleepy = await startTestServer({ file: { agents: { modules: [TEST_AGENTS], idleTimeoutMs: 50 } } });
    await sleepy.api("POST", "/agents/counter/shown/rpc/increment", [4]);
    const read = async () => (await sleepy.api("GET", `${BASE}/counter/instances/shown`)).body.result;
    expect(await read()).toMatchObject({
      agent: "counter",
      name: "shown",
      state: { count: 4 },
      queue_count: 0,
      dead_letter_count: 0,
      schedule_count: 0,
      next_due_at: null,
      connection_count: 0,
    });
    const listed = async () =>
      (await sleepy.api("GET", `${BASE}/counter/instances?search=shown`)).body.result[0];
    await waitUntil(listed, (instance) => !instance.in_memory);
    expect(await read()).toMatchObject({ state: { count: 4 }, in_memory: false });
    // The read did not load the instance.
    expect((await listed()).in_memory).toBe(false);
    await sleepy.stop();
  });

  it("the connections of an instance are shown", async () => {
    const client = await new RawClient(
      `${server.url}/agents/chatty/seen?_pk=c1&room=red&token=${ROOT_TOKEN}`,
      {
        token: null,
      },
    ).opened();
    await client.next((frame) => frame === "welcome c1");
    expect((await server.api("GET", `${BASE}/chatty/instances/seen/connections`)).body.result).toEqual([
      { id: "c1", tags: ["c1", "red"], is_readonly: false, uri: "/agents/chatty/seen?_pk=c1&room=red" },
    ]);
    client.close();
  });

  it("the recent activity of an instance is shown", async () => {
    await call("counter/recent/rpc/increment", 1);
    await call("counter/recent/rpc/syncFail");
    const { body } = await server.api("GET", `${BASE}/counter/instances/recent/events`);
    const types = body.result.map((event: { type: string }) => event.type);
    expect(types).toEqual(expect.arrayContaining(["turn:error", "turn", "state", "start"]));
    expect(body.result[0].timestamp >= body.result.at(-1).timestamp).toBe(true);
  });
});

describe("the live tail", () => {
  it("the live tail streams the activity of an instance from before its creation", async () => {
    const abort = new AbortController();
    const response = await fetch(`${server.url}${BASE}/counter/instances/tailed/events`, {
      headers: { authorization: `Bearer ${ROOT_TOKEN}`, accept: "text/event-stream" },
      signal: abort.signal,
    });
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    await call("counter/tailed/rpc/increment", 1);
    let text = "";
    const reader = (response.body as ReadableStream<Uint8Array>)
      .pipeThrough(new TextDecoderStream())
      .getReader();
    while (!text.includes('"label":"increment"')) text += (await reader.read()).value ?? "";
    expect(text).toContain("event: start\n");
    expect(text).toContain("event: state\n");
    abort.abort();
  });
});

describe("queue, dead letters and schedules", () => {
  it("queue, dead letters and schedules are listed; dead letters are read, replayed and discarded", async () => {
    await call("worker/m/rpc/enqueue", ["fail a", "fail b"], QUICK);
    const instance = `${BASE}/worker/instances/m`;
    const letters = await waitUntil(
      async () => (await server.api("GET", `${instance}/dead-letters`)).body.result,
      (all) => all.length === 2,
    );
    expect(letters[0]).toMatchObject({
      callback: "work",
      payload: { label: "fail a" },
      attempts: 1,
      origin: "queue",
    });
    expect((await server.api("GET", `${instance}/dead-letters/${letters[0].id}`)).body.result).toEqual(
      letters[0],
    );
    expect(
      (await server.api("POST", `${instance}/dead-letters/replay`, { ids: [letters[0].id, "nope"] })).body
        .result,
    ).toEqual({
      replayed: 1,
      remaining: 1,
    });
    const again = await waitUntil(
      async () => (await server.api("GET", `${instance}/dead-letters`)).body.result,
      (all) => all.length === 2 && all.every((letter: { id: string }) => letter.id !== letters[0].id),
    );
    expect((await server.api("DELETE", `${instance}/dead-letters/${again[0].id}`)).status).toBe(200);
    expect((await server.api("DELETE", `${instance}/dead-letters/${again[0].id}`)).status).toBe(404);
    expect((await server.api("GET", `${instance}/dead-letters/${again[0].id}`)).status).toBe(404);

    await call("worker/m/rpc/enqueue", ["fail c"], {
      retry: { maxAttempts: 2, baseDelayMs: 1e6, maxDelayMs: 1e6 },
    });
    const queue = await waitUntil(
      async () => (await server.api("GET", `${instance}/queue`)).body.result,
      (all) => all[0]?.attempts === 1,
    );
    expect(queue[0]).toMatchObject({ callback: "work", last_error: "Error: cannot do fail c" });
    await call("worker/m/rpc/plan", "0 0 * * *", "midnight");
    expect((await server.api("GET", `${instance}/schedules`)).body.result).toMatchObject([
      { type: "cron", cron: "0 0 * * *", callback: "tick", payload: "midnight" },
    ]);
    expect((await server.api("GET", `${instance}/queue?cursor=abc`)).status).toBe(400);
  });
});

describe("read-only SQL", () => {
  const query = (sql: string) => server.api("POST", `${BASE}/counter/instances/sql/sql`, { sql });

  it("a query is answered from the instance's database", async () => {
    await call("counter/sql/rpc/increment", 3);
    expect((await query("SELECT note, x'00ff' AS bytes FROM hits")).body.result).toEqual({
      rows: [{ note: "+3", bytes: { base64: "AP8=" } }],
      truncated: false,
    });
  });

  it("long results are truncated", async () => {
    const { body } = await query(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) SELECT i FROM n",
    );
    expect([body.result.rows.length, body.result.truncated]).toEqual([1000, true]);
  });

  it.each([
    "DELETE FROM hits",
    "DROP TABLE hits",
    "ATTACH 'x.db' AS x",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA writable_schema = 1",
    "VACUUM INTO 'copy.db'",
    "BEGIN",
    "INSERT INTO hits (note) VALUES ('x') RETURNING id",
    "WITH x AS (SELECT 1) UPDATE hits SET note = 'x'",
    "CREATE TEMP TABLE t (a)",
  ])("this statement is refused: %s", async (sql) => {
    await call("counter/sql/rpc/increment", 0);
    const answer = await query(sql);
    expect(answer.status).toBe(400);
    expect(answer.body.errors[0]).toEqual({ code: 3011, message: "only reading is allowed here" });
  });

  it("two statements are refused, and the error of an invalid statement is reported", async () => {
    expect((await query("SELECT 1; SELECT 2")).body.errors[0].message).toBe("one statement at a time");
    expect((await query("SELEKT 1")).body.errors[0].message).toContain("syntax error");
    expect((await query("SELECT * FROM absent")).body.errors[0].message).toBe("no such table: absent");
  });

  it("a query over the time limit is cancelled and blocks no other request", async () => {
    const endless = query(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    );
    expect((await call("counter/sql/rpc/read")).status).toBe(200);
    expect((await endless).body.errors[0].message).toContain("took longer than");
  });
});

describe("destroying an instance", () => {
  it("destroying an instance removes its data, closes its connections with a final code and frees the name", async () => {
    const client = await new RawClient(`${server.url}/agents/counter/doomed`).opened();
    await client.greeted();
    await client.call("increment", 9);
    await server.api("PUT", "/accounts/default/tags", {
      resource_type: "agent",
      resource_id: "counter/doomed",
      tags: { a: "b" },
    });
    const instance = `${BASE}/counter/instances/doomed`;
    expect((await server.api("DELETE", instance)).body.result).toEqual({ agent: "counter", name: "doomed" });
    expect(await client.closed()).toBe(4410);
    expect((await server.api("GET", instance)).status).toBe(404);
    expect((await server.api("DELETE", instance)).status).toBe(404);
    const { body } = await server.api("GET", "/accounts/default/tags/resources?type=agent&id=counter/doomed");
    expect(body.result).toEqual([]);
    expect((await call("counter/doomed/rpc/read")).body.result).toEqual({ count: 0, hits: 0 });
  });
});

describe("the command line", () => {
  const cli = (...args: string[]) => runCommand(server, args);

  it("the commands list, show, call, query and delete", async () => {
    expect(await cli("agents", "call", "counter", "from-cli", "increment", "5")).toEqual({
      code: 0,
      out: "5\n",
      err: "",
    });
    expect((await cli("agents", "list")).out).toMatch(/counter +Counter/);
    expect((await cli("agents", "instances", "counter", "--search", "from-cli")).out).toContain("from-cli");
    expect((await cli("agents", "show", "counter", "from-cli")).out).toContain('"count": 5');
    expect((await cli("agents", "sql", "counter", "from-cli", "SELECT note FROM hits")).out).toBe(
      "NOTE\n+5\n",
    );
    expect((await cli("agents", "queue", "counter", "from-cli")).out).toBe("the queue is empty\n");
    expect((await cli("agents", "schedules", "counter", "from-cli")).out).toBe("no schedules\n");
    expect((await cli("agents", "delete", "counter", "from-cli")).out).toBe("deleted counter/from-cli\n");
    expect(await cli("agents", "show", "counter", "from-cli")).toMatchObject({ code: 1 });
    expect((await cli("agents", "call", "counter", "x", "nope")).err).toContain("Method nope does not exist");
  });

  it("the --account option selects the account", async () => {
    await server.api("POST", "/accounts", { id: "elsewhere" });
    const inElsewhere = ["--account", "elsewhere"];
    expect((await cli("agents", "call", "counter", "of-two", "increment", "5")).out).toBe("5\n");
    expect((await cli("agents", "call", "counter", "of-two", "increment", "7", ...inElsewhere)).out).toBe(
      "7\n",
    );
    expect((await cli("agents", "show", "counter", "of-two", ...inElsewhere)).out).toContain('"count": 7');
    expect((await cli("agents", "delete", "counter", "of-two", ...inElsewhere)).code).toBe(0);
    expect((await cli("agents", "show", "counter", "of-two")).out).toContain('"count": 5');
    const unknown = await cli("agents", "call", "counter", "of-two", "read", "--account", "nowhere");
    expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining('Account "nowhere" not found') });
  });

  it("dead letters are replayed by id or all together", async () => {
    await call("worker/cli/rpc/enqueue", ["fail a"], QUICK);
    const out = await waitUntil(
      async () => (await cli("agents", "dead-letters", "worker", "cli", "--json")).out,
      (text) => (JSON.parse(text) as unknown[]).length === 1,
    );
    const [letter] = JSON.parse(out) as { id: string }[];
    expect((await cli("agents", "replay", "worker", "cli", letter?.id ?? "")).out).toBe("replayed 1\n");
    expect(await cli("agents", "replay", "worker", "cli", "nope")).toMatchObject({ code: 1 });
    expect((await cli("agents", "replay", "worker", "cli")).code).toBe(2);
    expect((await cli("agents", "replay", "worker", "cli", "--all")).code).toBe(0);
  });
});
