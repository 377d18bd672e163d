/**
 * Sections 2.3, 2.4, 4.3, 4.4 and 6 of the contract: the built-in agent, agents that extend it, deduplication,
 * retention, live state.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AgentClient } from "agents/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  ROOT_TOKEN,
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "../support/test-server.ts";
import type { Answer } from "../support/send-request.ts";
import { hexSignature, post, SECRET, sendGeneric, sendGithub } from "../support/webhook-sender.ts";

const MODULE = join(import.meta.dirname, "../fixtures/webhook-agents.ts");

const OPTIONS: TestServerOptions = {
  environment: {
    WEBHOOK_SECRET: SECRET,
    GITHUB_WEBHOOK_SECRET: SECRET,
    OBEY_WEBHOOK_SECRET: SECRET,
    ASK_WEBHOOK_SECRET: SECRET,
    CHOOSE_WEBHOOK_SECRET: SECRET,
  },
  file: {
    agents: { modules: [MODULE] },
    webhooks: {
      sources: {
        obey: { scheme: "generic", agent: "obedient-agent" },
        ask: { scheme: "generic", agent: "answering-agent" },
        choose: { scheme: "generic", agent: "choosy-agent" },
      },
    },
  },
};

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer(OPTIONS);
});

afterAll(() => server.stop());

interface Row {
  readonly id: string;
  readonly type: string;
  readonly title: string;
  readonly timestamp: string;
  readonly payload: string | null;
}

interface State {
  readonly lastEvent: {
    readonly id: string;
    readonly type: string;
    readonly title: string;
    readonly timestamp: string;
  } | null;
  readonly eventCount: number;
}

async function call<T>(
  agent: string,
  name: string,
  method: string,
  args: unknown[] = [],
  at = server,
): Promise<T> {
  const { status, body } = await at.api(
    "POST",
    `/agents/${agent}/${encodeURIComponent(name)}/rpc/${method}`,
    args,
  );
  if (status !== 200) throw new Error(`${method} answered ${status}: ${JSON.stringify(body)}`);
  return body.result as T;
}

const events = (name: string, limit = 1000, at = server) =>
  call<Row[]>("webhook-agent", name, "getEvents", [limit], at);

function connect(name: string, agent = "webhook-agent") {
  const states: State[] = [];
  let wake = () => {};
  const client = new AgentClient<State>({
    agent,
    name,
    host: new URL(server.url).host,
    query: { token: ROOT_TOKEN },
    onStateUpdate: (state) => {
      states.push(state);
      wake();
    },
  });
  const until = async (fits: (state: State) => boolean): Promise<State> => {
    for (;;) {
      const found = states.find(fits);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => (wake = resolve));
    }
  };
  return { client, states, until };
}

describe("the built-in agent", () => {
  it("each event updates the state of connected clients, who can query past events", async () => {
    const { client, until } = connect("live-repo");
    await client.ready;
    await sendGithub(server.url, {
      repository: "live/repo",
      delivery: "d-1",
      payload: { sender: { login: "octocat" }, commits: [{}] },
    });
    const first = await until((state) => state.eventCount === 1);
    expect(first.lastEvent).toMatchObject({
      id: "d-1",
      type: "push",
      title: "octocat pushed 1 commit",
      source: "github",
      actor: "octocat",
    });
    await sendGithub(server.url, {
      repository: "live/repo",
      delivery: "d-2",
      event: "star",
      payload: { action: "created" },
    });
    expect((await until((state) => state.eventCount === 2)).lastEvent).toMatchObject({
      id: "d-2",
      type: "star",
    });
    const rows = await client.call<Row[]>("getEvents", [5]);
    expect(rows.map(({ id }) => id)).toEqual(["d-2", "d-1"]);
    expect(JSON.parse(rows[1]?.payload ?? "")).toMatchObject({ repository: { full_name: "live/repo" } });
    expect((await client.call<Row[]>("getEventsByType", ["push"])).map(({ id }) => id)).toEqual(["d-1"]);
    client.close();
  });

  it("getEvents returns 20 events by default and accepts invalid limits", async () => {
    for (let i = 0; i < 25; i++)
      await sendGeneric(server.url, "limits", { id: `e-${i}`, type: i % 2 === 0 ? "even" : "odd" });
    expect(await call<Row[]>("webhook-agent", "limits", "getEvents")).toHaveLength(20);
    expect(await events("limits", 7)).toHaveLength(7);
    expect(await call<Row[]>("webhook-agent", "limits", "getEventsByType", ["odd", 100])).toHaveLength(12);
    for (const limit of ["x", null, Number.MAX_SAFE_INTEGER, -5, 2.5, {}]) {
      expect(Array.isArray(await call("webhook-agent", "limits", "getEvents", [limit]))).toBe(true);
    }
  });

  it("the newest 100 events are kept, all events are counted, and ids of dropped events are still duplicates", async () => {
    for (let i = 0; i < 130; i++) await sendGeneric(server.url, "busy", { id: `e-${i}` });
    const rows = await events("busy");
    expect(rows).toHaveLength(100);
    expect([rows[0]?.id, rows[99]?.id]).toEqual(["e-129", "e-30"]);
    expect((await sendGeneric(server.url, "busy", { id: "e-0" })).body).toEqual({ status: "duplicate" });
    const { client, until } = connect("busy");
    expect((await until(() => true)).eventCount).toBe(130);
    client.close();
  });

  it("the newest events are kept even if events have the same millisecond", async () => {
    const still = await startTestServer({ ...OPTIONS, clock: { now: () => Date.UTC(2026, 0, 1) } });
    try {
      for (let i = 0; i < 105; i++) await sendGeneric(still.url, "burst", { id: `e-${i}` });
      const rows = await events("burst", 1000, still);
      expect([rows.length, rows[0]?.id, rows[99]?.id]).toEqual([100, "e-104", "e-5"]);
    } finally {
      await still.stop();
    }
  });

  it("exactly the newest events are kept, also after events that were rolled back", async () => {
    const expected: string[] = [];
    for (const [i, type] of [
      "a",
      "refused",
      "b",
      "refused",
      "c",
      "d",
      "refused",
      "e",
      "f",
      "refused",
      "g",
    ].entries()) {
      const sent = await sendGeneric(
        server.url,
        "choose/few",
        { i },
        { "x-event-type": type, "x-event-id": `${i}` },
      );
      expect(sent.status).toBe(type === "refused" ? 500 : 200);
      if (type !== "refused") expected.unshift(type);
      const rows = await call<Row[]>("choosy-agent", "few", "getEvents");
      expect(rows.map((row) => row.type)).toEqual(expected.slice(0, 3));
    }
  });

  it("events older than 30 days are dropped, and their ids are forgotten only after that", async () => {
    let now = Date.UTC(2026, 0, 1);
    const dated = await startTestServer({ ...OPTIONS, clock: { now: () => now } });
    try {
      await sendGeneric(dated.url, "old", { id: "january" });
      now += 29 * 86_400_000;
      await sendGeneric(dated.url, "old", { id: "later" });
      expect((await events("old", 10, dated)).map(({ id }) => id)).toEqual(["later", "january"]);
      expect((await sendGeneric(dated.url, "old", { id: "january" })).body.status).toBe("duplicate");
      now += 2 * 86_400_000;
      await sendGeneric(dated.url, "old", { id: "february" });
      expect((await events("old", 10, dated)).map(({ id }) => id)).toEqual(["february", "later"]);
    } finally {
      await dated.stop();
    }
  });

  it("everything is there after a restart, and earlier deliveries are duplicates", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "signalbox-test-"));
    try {
      const before = await startTestServer({ ...OPTIONS, dataDir });
      await sendGithub(before.url, { repository: "acme/kept", delivery: "k-1" });
      await before.stop();
      const after = await startTestServer({ ...OPTIONS, dataDir });
      expect((await sendGithub(after.url, { repository: "acme/kept", delivery: "k-1" })).body).toEqual({
        status: "duplicate",
      });
      expect((await events("acme-kept", 10, after)).map(({ id }) => id)).toEqual(["k-1"]);
      const { body } = await after.api("GET", "/accounts/default/webhooks/deliveries");
      expect((body.result as { status: string }[]).map(({ status }) => status)).toEqual([
        "duplicate",
        "accepted",
      ]);
      await after.stop();
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  });
});

describe("the event table", () => {
  it("the event table has exactly the contract's columns and an index on descending time", async () => {
    await sendGeneric(server.url, "obey/table", { id: "t" });
    const { columns, indexes } = await call<{ columns: object[]; indexes: { sql: string }[] }>(
      "obedient-agent",
      "table",
      "describeTable",
    );
    const column = (name: string, required = 0, pk = 0) => ({ name, type: "TEXT", required, pk });
    expect(columns).toEqual([
      column("id", 0, 1),
      column("type", 1),
      column("action"),
      column("title", 1),
      column("description"),
      column("url"),
      column("actor"),
      column("payload"),
      column("timestamp", 1),
    ]);
    expect(indexes).toEqual([{ sql: expect.stringMatching(/ON events \(timestamp DESC\)/) }]);
  });

  it.each([
    ["milliseconds", (time: number) => time],
    ["milliseconds as text", (time: number) => String(time)],
    ["seconds", (time: number) => Math.floor(time / 1000)],
    ["an offset", (time: number) => new Date(time).toISOString().replace("Z", "+00:00")],
    ["a date without a zone", (time: number) => new Date(time).toISOString().slice(0, 19).replace("T", " ")],
  ])("recent rows are kept and old rows dropped if times are written as %s", async (form, write) => {
    const name = `times-${form.replaceAll(" ", "-")}`;
    await sendGeneric(server.url, `obey/${name}`, { id: "first" });
    await call("obedient-agent", name, "insertRaw", ["fresh", write(Date.now() - 60_000)]);
    await call("obedient-agent", name, "insertRaw", ["stale", write(Date.now() - 31 * 86_400_000)]);
    await sendGeneric(server.url, `obey/${name}`, { id: "second" });
    const rows = await call<Row[]>("obedient-agent", name, "getEvents");
    expect(rows.map(({ id }) => id)).toEqual(["second", "first", "fresh"]);
    expect(rows[2]?.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });
});

describe("an agent that extends the built-in agent", () => {
  const obey = (name: string, payload: object) => sendGeneric(server.url, `obey/${name}`, payload);
  const runs = (name: string) => call<{ id: string; note: string }[]>("obedient-agent", name, "runs");

  it("the agent is chosen per source, handles each event, and keeps the built-in table without calling super", async () => {
    expect((await obey("plain", { id: "p-1" })).status).toBe(200);
    expect(await runs("plain")).toEqual([{ id: "p-1", note: "nothing" }]);
    expect((await call<Row[]>("obedient-agent", "plain", "getEvents")).map(({ id }) => id)).toEqual(["p-1"]);
  });

  it("a delivery is answered 202 if the agent queued the work, and the work is done", async () => {
    const answer = await obey("queued", { id: "q-1", do: "queue" });
    expect([answer.status, answer.body]).toEqual([202, { status: "queued" }]);
    await expect.poll(() => runs("queued")).toContainEqual({ id: "q-1", note: "worked" });
    expect((await obey("queued", { id: "q-1", do: "queue" })).body).toEqual({ status: "duplicate" });
  });

  it.each(["throw", "throw-later"])(
    "a failure (%s) is answered 500 without a reason, and nothing is counted",
    async (how) => {
      const answer = await obey(`failing-${how}`, { id: "f-1", do: how });
      expect(answer.status).toBe(500);
      expect(JSON.stringify(answer.body)).not.toContain("secret reason");
      expect(await call<Row[]>("obedient-agent", `failing-${how}`, "getEvents")).toEqual([]);
      const { body } = await server.api(
        "GET",
        `/accounts/default/webhooks/deliveries?instance=failing-${how}`,
      );
      expect(body.result[0]).toMatchObject({ status: "failed", reason: "handler_failed", http_status: 500 });
    },
  );

  it("a failed delivery runs again on the provider's retry, and then once", async () => {
    expect((await obey("retried", { id: "r-1", do: "throw-once" })).status).toBe(500);
    expect((await obey("retried", { id: "r-1", do: "throw-once" })).status).toBe(200);
    expect((await obey("retried", { id: "r-1", do: "throw-once" })).body).toEqual({ status: "duplicate" });
    expect(await runs("retried")).toHaveLength(1);
  });

  it("a failed delivery can be replayed under its own id", async () => {
    await obey("replayed", { id: "x-1", do: "throw-once" });
    const { body } = await server.api("GET", "/accounts/default/webhooks/deliveries?instance=replayed");
    const replay = await server.api(
      "POST",
      `/accounts/default/webhooks/deliveries/${body.result[0].id}/replay`,
      {},
    );
    expect(replay.body.result).toEqual({ status: "processed", event_id: "x-1", error: null });
    expect((await obey("replayed", { id: "x-1", do: "throw-once" })).body).toEqual({ status: "duplicate" });
  });

  it("an agent without onEvent answers the delivery itself", async () => {
    const answer = await sendGeneric(server.url, "ask/guild", { id: "i-1", type: 2 });
    expect([answer.status, answer.body]).toEqual([200, { type: 4, data: { content: "you sent 2" } }]);
  });
});

describe("duplicates", () => {
  it("50 concurrent copies of one delivery run once", async () => {
    const payload = { id: "same", type: "copy" };
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => sendGeneric(server.url, "obey/copies", payload)),
    );
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(answers.filter(({ body }) => body.status === "processed")).toHaveLength(1);
    expect(answers.filter(({ body }) => body.status === "duplicate")).toHaveLength(49);
    expect(await call("obedient-agent", "copies", "runs")).toHaveLength(1);
  });

  it("deliveries with the same id differ by entity and by source", async () => {
    expect((await sendGeneric(server.url, "entity-a", { id: "1" })).body.status).toBe("processed");
    expect((await sendGeneric(server.url, "entity-b", { id: "1" })).body.status).toBe("processed");
    expect((await sendGithub(server.url, { path: "github/entity-a", delivery: "1" })).body.status).toBe(
      "processed",
    );
  });

  it("deliveries without an id are identified by their body", async () => {
    expect((await sendGeneric(server.url, "nameless", { a: 1 })).body.status).toBe("processed");
    expect((await sendGeneric(server.url, "nameless", { a: 1 })).body.status).toBe("duplicate");
    expect((await sendGeneric(server.url, "nameless", { a: 2 })).body.status).toBe("processed");
  });
});

describe("a delivery posted to the instance", () => {
  const url = () => `${server.url}/agents/webhook-agent/direct`;
  const send = (body: string, headers: Record<string, string>): Promise<Answer> =>
    post(url(), body, { authorization: `Bearer ${ROOT_TOKEN}`, ...headers });

  it("the checks run in the same order: 405, 401, 400, 200, duplicate", async () => {
    const get = await fetch(url(), { headers: { authorization: `Bearer ${ROOT_TOKEN}` } });
    expect([get.status, get.headers.get("allow")]).toEqual([405, "POST"]);
    const body = JSON.stringify({ id: "direct-1", type: "hello" });
    expect((await send(body, {})).status).toBe(401);
    expect((await send(body, { "x-hub-signature-256": hexSignature(body, "wrong") })).status).toBe(401);
    expect((await send("{", { "x-signature": hexSignature("{") })).status).toBe(400);
    const accepted = await send(body, {
      "x-hub-signature-256": hexSignature(body),
      "x-event-type": "greeting",
    });
    expect([accepted.status, accepted.body]).toEqual([200, { status: "processed" }]);
    expect((await events("direct"))[0]).toMatchObject({ id: "direct-1", type: "greeting" });
    expect((await send(body, { "x-signature": hexSignature(body) })).body).toEqual({ status: "duplicate" });
    expect((await sendGeneric(server.url, "direct", { id: "direct-1", type: "hello" })).body).toEqual({
      status: "duplicate",
    });
  });
});
