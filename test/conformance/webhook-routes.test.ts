/** Routes of a webhook source: one delivery, many targets. A real receiver, the service in this process, real time. */
import { createHmac } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { readMetric } from "../support/read-metric.ts";
import { eventIds } from "../support/send-request.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";
import { hexSignature, SECRET, sendGeneric } from "../support/webhook-sender.ts";

interface Received {
  readonly path: string;
  readonly method: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

type Row = Record<string, unknown>;

let server: TestServer;
let received: Received[] = [];
/** By path; the last answer repeats. */
let answers: Record<string, { status: number; headers?: Record<string, string>; body?: string }[]> = {};
const STANDARD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

const receiver = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const path = request.url ?? "";
    received.push({
      path,
      method: request.method ?? "",
      headers: request.headers,
      body: Buffer.concat(chunks).toString(),
    });
    const own = answers[path] ?? [];
    const { status, headers = {}, body = "" } = (own.length > 1 ? own.shift() : own[0]) ?? { status: 200 };
    response.writeHead(status, headers);
    response.end(body);
  });
});

const at = (path: string) => `http://127.0.0.1:${(receiver.address() as AddressInfo).port}${path}`;
const to = (path: string) => received.filter((one) => one.path === path);

beforeAll(async () => {
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  const generic = { scheme: "generic" as const, secretVariable: "ALL_SECRET" };
  server = await startTestServer({
    environment: { ALL_SECRET: SECRET, RECEIVER_SECRET: STANDARD_SECRET },
    file: {
      agents: { modules: [join(import.meta.dirname, "../fixtures/webhook-agents.ts")] },
      outgoing: { allowPrivateHosts: true },
      alerts: { checkIntervalMs: 20 },
      webhooks: {
        sources: {
          orders: {
            ...generic,
            routes: [
              { name: "agent", to: { agent: "webhook-agent" } },
              {
                name: "paid",
                when: {
                  body: { type: { $startsWith: "order." }, total: { $gte: 100 } },
                  headers: { "X-Region": "eu" },
                },
                to: { url: at("/paid"), auth: { type: "standard", secretVariable: "RECEIVER_SECRET" } },
              },
              { name: "all", to: { url: at("/all"), headers: { "X-Team": "billing" } } },
            ],
          },
          single: {
            ...generic,
            routes: [{ name: "only", when: { body: { type: "yes" } }, to: { agent: "webhook-agent" } }],
          },
          lists: { ...generic, batch: true, deliveryId: "body:id" },
          free: generic,
          quiet: generic,
        },
      },
    },
  });
});

afterAll(async () => {
  await server.stop();
  receiver.closeAllConnections();
  receiver.close();
});

beforeEach(() => {
  received = [];
  answers = {};
});

const ACCOUNT = "/accounts/default/webhooks";
const get = async <T = Row>(path: string): Promise<T> => {
  const { status, body } = await server.api("GET", ACCOUNT + path);
  expect([path, status]).toEqual([path, 200]);
  return body.result as T;
};
const call = (method: string, path: string, body?: unknown) => server.api(method, ACCOUNT + path, body);
const events = (query: string) => get<Row[]>(`/events?${query}`);
const settled = (query: string, states: Record<string, string>) =>
  waitUntil(
    async () => Object.fromEntries((await events(query)).map((one) => [one["route"], one["state"]])),
    (found) => Object.entries(states).every(([route, state]) => found[route] === state),
  );
const newest = async (source: string) =>
  (await get<Row[]>(`/deliveries?source=${source}&limit=1`))[0]?.["id"] as string;
let next = 0;
const send = async (source: string, payload: Row = {}, headers: Record<string, string> = {}) => {
  const id = `d${(next += 1)}`;
  const answer = await sendGeneric(server.url, `${source}/cust`, { id, ...payload }, headers);
  expect(answer.status).toBe(202);
  return { id, delivery: await newest(source) };
};
const put = async (source: string, name: string, settings: Row) => {
  const answer = await call("PUT", `/sources/${source}/routes/${name}`, settings);
  expect([answer.status, answer.body]).toMatchObject([200, { success: true }]);
};

describe("routes of the configuration file", () => {
  it("one delivery reaches an agent once and each address with the sender's bytes, and every route has its event", async () => {
    const { id, delivery } = await send("orders", { type: "order.paid", total: 120 }, { "x-region": "eu" });
    await settled(`delivery=${delivery}`, { agent: "delivered", paid: "delivered", all: "delivered" });
    expect(await eventIds(server, "cust", "webhook-agent")).toContain(id);
    const [paid] = to("/paid");
    const [all] = to("/all");
    expect(paid?.body).toBe(JSON.stringify({ id, type: "order.paid", total: 120 }));
    // The sender's signature arrives, so that the sender's own verifier accepts the request.
    expect(all?.headers["x-signature"]).toBe(hexSignature(all?.body ?? ""));
    expect(all?.headers["x-team"]).toBe("billing");
    expect(() => new Webhook(STANDARD_SECRET).verify(paid?.body ?? "", paid?.headers as never)).not.toThrow();
    const [event] = await events(`delivery=${delivery}&route=paid`);
    expect(paid?.headers["webhook-id"]).toBe(event?.["id"]);
    expect(paid?.headers["signalbox-event-id"]).toBe(event?.["id"]);
    const detail = await get(`/events/${String(event?.["id"])}`);
    expect(detail["attempt_list"]).toMatchObject([
      { number: 1, trigger: "initial", outcome: "delivered", status: 200, request: { url: at("/paid") } },
    ]);
    expect(JSON.stringify(detail)).not.toContain("v1,");
    expect(await get(`/deliveries/${delivery}`)).toMatchObject({ status: "accepted", body: paid?.body });
    expect((await call("POST", `/deliveries/${delivery}/replay`)).status).toBe(409);
  });

  it("a route whose filter does not match has an event that says which part did not", async () => {
    const { delivery } = await send("orders", { type: "order.paid", total: 5 }, { "x-region": "eu" });
    await settled(`delivery=${delivery}`, { agent: "delivered", paid: "ignored", all: "delivered" });
    const [event] = await events(`delivery=${delivery}&route=paid`);
    expect(event?.["reason"]).toBe("the filter on the body does not match");
    const { body } = await call("POST", "/sources/orders/routes/try", { delivery });
    expect(body.result).toMatchObject([
      { route: "agent", verdict: "match", because: "would match, because there is no filter" },
      { route: "paid", verdict: "mismatch", because: "would not match, because body total is 5 ($gte 100)" },
      { route: "all", verdict: "match" },
    ]);
    const own = await call("POST", "/sources/orders/routes/try", { delivery, when: { body: { total: 5 } } });
    expect(own.body.result).toMatchObject([
      { route: null, because: "would match, because body total is 5 (= 5)" },
    ]);
  });

  it("a filter can be tried on every delivery of the source: also on one that its agent received at once, and not on one that was refused or of another source", async () => {
    expect((await sendGeneric(server.url, "single/tried", { id: "at-once", type: "yes" })).status).toBe(200);
    const delivery = await newest("single");
    const attempt = (source: string, body: object, account = "default") =>
      server.api("POST", `/accounts/${account}/webhooks/sources/${source}/routes/try`, body);
    expect((await attempt("single", { delivery })).body.result).toMatchObject([
      { route: "only", verdict: "match", because: 'would match, because body type is "yes" (= "yes")' },
    ]);
    const when = { path: "/webhooks/other", headers: { "content-type": { $startsWith: "application/" } } };
    expect((await attempt("single", { delivery, when })).body.result).toMatchObject([
      { route: null, verdict: "mismatch" },
    ]);
    expect((await attempt("orders", { delivery })).status).toBe(404);
    const forged = await sendGeneric(server.url, "single/tried", { id: "forged" }, {}, "wrong");
    expect(forged.status).toBe(401);
    const refused = await waitUntil(
      () => get<Row[]>("/deliveries?source=single&status=rejected&limit=1"),
      (found) => found.length === 1,
    );
    expect((await attempt("single", { delivery: refused[0]?.["id"] })).status).toBe(404);
  });

  it("a delivery that its sender repeats is a duplicate, and no target receives it twice", async () => {
    const { id, delivery } = await send("orders", { type: "x" });
    const again = await sendGeneric(server.url, "orders/cust", { id, type: "x" });
    expect([again.status, again.body]).toEqual([200, { status: "duplicate" }]);
    await settled(`delivery=${delivery}`, { all: "delivered" });
    expect(to("/all")).toHaveLength(1);
  });

  it("the only route of a source, to an agent, answers as the agent does, and stores what its filter ignores", async () => {
    const taken = await sendGeneric(server.url, "single/one", { id: "1", type: "yes" });
    expect([taken.status, taken.body]).toEqual([200, { status: "processed" }]);
    const ignored = await sendGeneric(server.url, "single/one", { id: "2", type: "no" });
    expect(ignored.status).toBe(202);
    expect(await events("source=single")).toMatchObject([{ route: "only", state: "ignored" }]);
    expect(await eventIds(server, "one", "webhook-agent")).toEqual(["1"]);
  });

  it("the items of a list are deliveries of their own, with the sender's digits", async () => {
    const list = '[{"id":"a","n":12345678901234567890},{"id":"b","n":1}]';
    expect((await sendGeneric(server.url, "lists/lister", list)).status).toBe(202);
    await waitUntil(
      () => events("source=lists&state=delivered"),
      (found) => found.length === 2,
    );
    expect((await eventIds(server, "lister", "webhook-agent")).sort()).toEqual(["a", "b"]);
    const [second, first] = await events("source=lists");
    expect((await get(`/events/${String(first?.["id"])}`))["payload"]).toMatchObject({
      body: '{"id":"a","n":12345678901234567890}',
    });
    expect(second?.["delivery"]).not.toBe(first?.["delivery"]);
    const divided = { delivery: await newest("lists"), when: { body: { id: "a" } } };
    const refused = await call("POST", "/sources/lists/routes/try", divided);
    expect([refused.status, refused.body.errors[0].message]).toEqual([
      400,
      "The delivery is a list that was divided; name one of its items",
    ]);
    const item = { ...divided, delivery: first?.["delivery"] };
    expect((await call("POST", "/sources/lists/routes/try", item)).body.result).toMatchObject([
      { verdict: "match" },
    ]);
  });

  it("cannot be changed through the interface", async () => {
    const answer = await call("PUT", "/sources/orders/routes/all", { to: { url: at("/x") } });
    expect([answer.status, answer.body.errors[0].message]).toEqual([
      409,
      "The configuration file defines the route all; change it there and restart",
    ]);
    expect((await call("DELETE", "/sources/orders/routes/all")).status).toBe(409);
  });
});

describe("routes of the interface", () => {
  it("are created, read, replaced and deleted by name; secrets are never shown, and stay with their address", async () => {
    const auth = { type: "bearer", secret: "the-token-of-the-receiver" };
    await put("free", "main", { to: { url: at("/main"), auth } });
    const read = await get("/sources/free/routes/main");
    expect(read).toMatchObject({
      name: "main",
      defined_in: "api",
      paused: false,
      to: { url: at("/main"), auth: { type: "bearer", secret: "[secret]" } },
    });
    await put("free", "main", { to: { url: at("/main2"), auth: { type: "bearer", secret: "[secret]" } } });
    const { delivery } = await send("free", { type: "t" });
    await settled(`delivery=${delivery}`, { main: "delivered" });
    expect(to("/main2")[0]?.headers.authorization).toBe("Bearer the-token-of-the-receiver");
    const moved = await call("PUT", "/sources/free/routes/main", {
      to: { url: "http://127.0.0.1:1/", auth: { type: "bearer", secret: "[secret]" } },
    });
    expect(moved.status).toBe(400);
    expect((await call("DELETE", "/sources/free/routes/main")).status).toBe(200);
    expect(await get("/sources/free/routes")).toEqual([]);
    // Without routes the source is as before.
    expect((await sendGeneric(server.url, "free/cust", { id: "plain" })).body).toEqual({
      status: "processed",
    });
  });

  it("sign with each kind of credential", async () => {
    for (const [name, auth] of Object.entries({
      basic: { type: "basic", username: "me", secret: "pass" },
      header: { type: "header", name: "X-Api-Key", secret: "key" },
      ours: { type: "signature", secret: "shared" },
      standard: { type: "standard", secret: STANDARD_SECRET },
    }))
      await put("free", name, { to: { url: at(`/${name}`), auth } });
    const { delivery } = await send("free", { type: "t" });
    await settled(`delivery=${delivery}`, {
      basic: "delivered",
      header: "delivered",
      ours: "delivered",
      standard: "delivered",
    });
    expect(to("/basic")[0]?.headers.authorization).toBe(`Basic ${btoa("me:pass")}`);
    expect(to("/header")[0]?.headers["x-api-key"]).toBe("key");
    const ours = to("/ours")[0];
    expect(ours?.headers["x-signature"]).toBe(
      `sha256=${createHmac("sha256", "shared")
        .update(ours?.body ?? "")
        .digest("hex")}`,
    );
    const standard = to("/standard")[0];
    expect(() =>
      new Webhook(STANDARD_SECRET).verify(standard?.body ?? "", standard?.headers as never),
    ).not.toThrow();
    for (const name of ["basic", "header", "ours", "standard"])
      await call("DELETE", `/sources/free/routes/${name}`);
  });

  it.each([
    [
      "a filter that cannot be used",
      { when: { body: { a: { $regex: "x" } } }, to: { url: "https://a.example" } },
    ],
    ["an agent that does not exist", { to: { agent: "nobody" } }],
    ["an address of another kind", { to: { url: "ftp://a.example" } }],
    ["an address with a password", { to: { url: "https://me:pass@a.example" } }],
    ["a header of the connection", { to: { url: "https://a.example", headers: { "Content-Length": "1" } } }],
    ["a line break in a header", { to: { url: "https://a.example", headers: { x: "a\r\nb: c" } } }],
    [
      "the name of a variable",
      { to: { url: "https://a.example", auth: { type: "bearer", secretVariable: "PATH" } } },
    ],
    ["two targets", { to: { url: "https://a.example", agent: "webhook-agent" } }],
    ["an unknown member", { to: { agent: "webhook-agent" }, retries: 5 }],
  ])("%s is refused when it is saved", async (_what, settings) => {
    expect((await call("PUT", "/sources/free/routes/bad", settings)).status).toBe(400);
  });

  it.each<[object, string]>([
    [{ url: "ftp://a.example" }, "expected an http:// or https:// address"],
    [{ object: { class: "Room" } }, "expected string"],
    [{ url: "https://a.example", timeoutMs: 1 }, "timeoutMs"],
    [{ url: "https://a.example", agent: "webhook-agent" }, "expected one of agent, object, listen, url"],
    [{ to: "webhook-agent" }, "expected one of agent, object, listen, url"],
  ])("the error of the target %o names what is wrong with it", async (to, message) => {
    const { body } = await call("PUT", "/sources/free/routes/bad", { to });
    expect(JSON.stringify(body)).toContain(message);
  });
});

describe("attempts", () => {
  it("filters on the query and the path decide, and the request has the method of the route", async () => {
    const when = { query: { tenant: "a", tag: ["x", "y"] }, path: { $endsWith: "/cust" } };
    await put("free", "put", { when, to: { url: at("/put"), method: "PUT" } });
    await put("free", "delete", {
      when: { query: { tenant: "b" } },
      to: { url: at("/d"), method: "DELETE" },
    });
    const post = async (path: string, id: string) => {
      expect((await sendGeneric(server.url, path, { id })).status).toBe(202);
      return `delivery=${await newest("free")}`;
    };
    const both = await post("free/cust?tenant=a&tag=x&tag=y", "query-1");
    await settled(both, { put: "delivered", delete: "ignored" });
    expect((await events(`${both}&route=delete`))[0]?.["reason"]).toBe(
      "the filter on the query does not match",
    );
    const path = await post("free/another?tenant=a&tag=x&tag=y", "query-2");
    await settled(path, { put: "ignored", delete: "ignored" });
    expect((await events(`${path}&route=put`))[0]?.["reason"]).toBe("the filter on the path does not match");
    await settled(await post("free/cust?tenant=b", "query-3"), { put: "ignored", delete: "delivered" });
    expect(to("/put").map(({ method, body }) => [method, body])).toEqual([["PUT", '{"id":"query-1"}']]);
    expect(to("/d").map(({ method, body }) => [method, body])).toEqual([["DELETE", '{"id":"query-3"}']]);
    for (const name of ["put", "delete"]) await call("DELETE", `/sources/free/routes/${name}`);
  });

  it("a failing receiver is retried as the route says, with one id and the number of the attempt", async () => {
    answers["/flaky"] = [{ status: 500, body: "out of order" }, { status: 429 }, { status: 200 }];
    await put("free", "flaky", {
      to: { url: at("/flaky") },
      retry: { strategy: "list", intervalsMs: [1000, 1000] },
    });
    const { delivery } = await send("free", { type: "t" });
    await settled(`delivery=${delivery}`, { flaky: "delivered" });
    expect(to("/flaky").map(({ headers }) => headers["signalbox-attempt"])).toEqual(["1", "2", "3"]);
    expect(new Set(to("/flaky").map(({ headers }) => headers["signalbox-event-id"])).size).toBe(1);
    const [event] = await events(`delivery=${delivery}`);
    expect((await get(`/events/${String(event?.["id"])}`))["attempt_list"]).toMatchObject([
      { number: 1, trigger: "initial", status: 500, response: { body: "out of order" } },
      { number: 2, trigger: "automatic", status: 429 },
      { number: 3, trigger: "automatic", status: 200 },
    ]);
    await call("DELETE", "/sources/free/routes/flaky");
  });

  it("a status that the route does not retry, and the end of the retries, make an event fail, and a replay delivers it", async () => {
    answers["/strict"] = [{ status: 404 }];
    const retry = { strategy: "linear", intervalMs: 1000, count: 5, statuses: [">=500", 429] };
    await put("free", "strict", { to: { url: at("/strict") }, retry });
    const { delivery } = await send("free", { type: "t" });
    await settled(`delivery=${delivery}`, { strict: "failed" });
    const [event] = await events(`delivery=${delivery}`);
    expect(event).toMatchObject({ attempts: 1, reason: "the receiver answered 404" });
    answers["/strict"] = [{ status: 200 }];
    expect((await call("POST", `/events/${String(event?.["id"])}/replay`)).status).toBe(200);
    await settled(`delivery=${delivery}`, { strict: "delivered" });
    expect((await get(`/events/${String(event?.["id"])}`))["attempt_list"]).toMatchObject([
      { trigger: "initial" },
      { trigger: "manual", number: 2 },
    ]);
    await call("DELETE", "/sources/free/routes/strict");
  });

  it("a Retry-After is honoured, at most for a day", async () => {
    answers["/later"] = [{ status: 503, headers: { "retry-after": "7200" } }];
    answers["/much-later"] = [{ status: 503, headers: { "retry-after": "999999" } }];
    const retry = { strategy: "linear", intervalMs: 1000, count: 5 };
    for (const name of ["later", "much-later"])
      await put("free", name, { to: { url: at(`/${name}`) }, retry });
    const { delivery } = await send("free", { type: "t" });
    await settled(`delivery=${delivery}`, { later: "scheduled", "much-later": "scheduled" });
    const found = await events(`delivery=${delivery}`);
    const waits = found.map((one) => [
      one["route"],
      Math.round(
        (Date.parse(String(one["next_attempt_at"])) - Date.parse(String(one["received_at"]))) / 3_600_000,
      ),
    ]);
    expect(Object.fromEntries(waits)).toEqual({ later: 2, "much-later": 24 });
    for (const name of ["later", "much-later"]) {
      expect((await call("DELETE", `/sources/free/routes/${name}`)).status).toBe(200);
    }
    expect((await events(`delivery=${delivery}`)).map((one) => [one["state"], one["reason"]])).toEqual([
      ["cancelled", "the route was deleted"],
      ["cancelled", "the route was deleted"],
    ]);
  });

  it("410 pauses the route and says so; the event is held, and delivered when the route is resumed", async () => {
    answers["/gone"] = [{ status: 410 }];
    const alert = await server.api("POST", "/accounts/default/alerts", {
      name: "Paused",
      metric: "paused_routes",
      threshold: 1,
      source: "free",
      receivers: [{ type: "webhook", url: at("/alert") }],
    });
    expect(alert.status).toBe(200);
    await put("free", "gone", { to: { url: at("/gone") } });
    const { delivery } = await send("free", { type: "t" });
    await settled(`delivery=${delivery}`, { gone: "held" });
    expect(await get("/sources/free/routes/gone")).toMatchObject({ paused: true, paused_because: "gone" });
    expect(server.logs.some(({ msg }) => String(msg).includes("answered 410 Gone"))).toBe(true);
    await waitUntil(
      () => to("/alert").length,
      (count) => count > 0,
    );
    answers["/gone"] = [{ status: 200 }];
    expect((await call("POST", "/sources/free/routes/gone/resume")).status).toBe(200);
    await settled(`delivery=${delivery}`, { gone: "delivered" });
    await call("DELETE", "/sources/free/routes/gone");
  });

  it("events that fail for one cause are one issue, which a receiver is told once; it is acknowledged and resolved, and metrics count the attempts", async () => {
    answers["/broken"] = [{ status: 500 }];
    const retry = { strategy: "linear", intervalMs: 1000, count: 0 };
    await put("free", "broken", { to: { url: at("/broken") }, retry });
    const counted = () =>
      readMetric(server, 'signalbox_webhook_attempts_total{source="free",outcome="failed"}');
    const timed = () => readMetric(server, 'signalbox_webhook_attempt_seconds_count{source="free"}');
    // A metric that nothing has counted yet is not reported.
    const [failedBefore = 0, timedBefore = 0] = [await counted(), await timed()].map((n) => n || 0);
    const alert = await server.api("POST", "/accounts/default/alerts", {
      name: "Issues",
      metric: "webhook_issues",
      threshold: 1,
      source: "free",
      receivers: [{ type: "webhook", url: at("/issues") }],
    });
    expect(alert.status).toBe(200);
    for (let n = 0; n < 3; n++) {
      const { delivery } = await send("free", { n });
      await settled(`delivery=${delivery}`, { broken: "failed" });
    }
    await waitUntil(
      () => to("/issues").length,
      (count) => count > 0,
    );
    expect(JSON.parse(to("/issues")[0]?.body ?? "")).toMatchObject({
      data: { metric: "webhook_issues", value: 1, source: "free" },
    });
    const [issue, ...others] = await get<Row[]>("/issues?source=free&route=broken");
    expect(others).toEqual([]);
    const { id } = issue as { id: string };
    expect(issue).toMatchObject({ state: "open", cause: "the receiver answered 500", count: 3 });
    expect(await events(`issue=${id}`)).toHaveLength(3);
    // The text of the metrics is a moment old.
    await expect
      .poll(async () => [
        await counted(),
        await timed(),
        await readMetric(server, "signalbox_webhook_route_attempts"),
      ])
      .toEqual([failedBefore + 3, timedBefore + 3, 0]);

    const path = `/issues/${id}`;
    expect((await call("POST", `${path}/acknowledge`)).body.result).toMatchObject({ state: "acknowledged" });
    expect(await get("/issues?state=open&route=broken")).toEqual([]);
    const resolved = (await call("POST", `${path}/resolve`)).body.result;
    expect(resolved).toMatchObject({ state: "resolved", resolved_at: expect.any(String) });
    // What is resolved is not acknowledged any more.
    expect((await call("POST", `${path}/acknowledge`)).body.result).toMatchObject({ state: "resolved" });
    const reader = await server.token(["webhooks.read"]);
    for (const action of ["acknowledge", "resolve"]) {
      const url = `${ACCOUNT}${path}/${action}`;
      expect((await server.api("POST", url, undefined, reader)).status).toBe(403);
      const other = url.replace("/default/", "/none/");
      expect((await server.api("POST", other)).status).toBe(404);
    }
    const { delivery } = await send("free", { n: 4 });
    await settled(`delivery=${delivery}`, { broken: "failed" });
    expect(await get(path)).toMatchObject({ state: "open", count: 1, resolved_at: null });
    await call("DELETE", "/sources/free/routes/broken");
  });

  it("redirects are not followed", async () => {
    answers["/moved"] = [{ status: 302, headers: { location: at("/elsewhere") } }];
    await put("free", "moved", {
      to: { url: at("/moved") },
      retry: { strategy: "linear", intervalMs: 1000, count: 0 },
    });
    const { delivery } = await send("free", { type: "t" });
    await settled(`delivery=${delivery}`, { moved: "failed" });
    expect(to("/elsewhere")).toEqual([]);
    await call("DELETE", "/sources/free/routes/moved");
  });

  it("a repeated content is ignored within the window of its route", async () => {
    await put("free", "window", {
      to: { url: at("/window") },
      dedupe: { windowMs: 3_600_000, fields: ["order.id"] },
    });
    await send("free", { order: { id: 1 }, at: 1 });
    await send("free", { order: { id: 1 }, at: 2 });
    await send("free", { order: { id: 2 }, at: 3 });
    const found = (await events("route=window")).toReversed();
    expect(found.map((one) => one["state"] === "ignored")).toEqual([false, true, false]);
    expect(found[1]?.["reason"]).toBe(`dedupe: it equals the event ${String(found[0]?.["id"])}`);
    await waitUntil(
      () => to("/window").length,
      (count) => count === 2,
    );
    await call("DELETE", "/sources/free/routes/window");
  });

  it("events of an entity arrive in order where the route asks for it, also past a failure", async () => {
    answers["/ordered"] = [{ status: 500 }, { status: 200 }];
    await put("free", "ordered", {
      to: { url: at("/ordered") },
      order: "entity",
      retry: { strategy: "linear", intervalMs: 1000, count: 3 },
    });
    for (let n = 0; n < 4; n++) await send("free", { n });
    await waitUntil(
      () => to("/ordered").length,
      (count) => count === 5,
    );
    expect(to("/ordered").map(({ body }) => (JSON.parse(body) as { n: number }).n)).toEqual([0, 0, 1, 2, 3]);
    await call("DELETE", "/sources/free/routes/ordered");
  });
});

describe("pause, resume and replay", () => {
  it("a paused route holds its events, and delivers them when it is resumed", async () => {
    await put("quiet", "main", { to: { url: at("/quiet") }, paused: true });
    const { delivery } = await send("quiet", { type: "held" });
    expect(await events(`delivery=${delivery}`)).toMatchObject([{ state: "held", attempts: 0 }]);
    expect(await events("source=quiet&state=held")).toHaveLength(1);
    expect(await events("source=quiet&state=queued")).toEqual([]);
    // A new address does not resume the route.
    await put("quiet", "main", { to: { url: at("/quiet2") } });
    expect(await get("/sources/quiet/routes/main")).toMatchObject({
      paused: true,
      paused_because: "operator",
    });
    await call("POST", "/sources/quiet/routes/main/resume");
    await settled(`delivery=${delivery}`, { main: "delivered" });
    expect(to("/quiet2")).toHaveLength(1);
    expect(to("/quiet")).toEqual([]);
  });

  it("a dry run counts what the replay then delivers", async () => {
    answers["/bulk"] = [{ status: 500 }];
    const retry = { strategy: "linear", intervalMs: 1000, count: 0 };
    await put("quiet", "bulk", { to: { url: at("/bulk") }, retry });
    for (let n = 0; n < 3; n++) await send("quiet", { type: "bulk", note: `number ${n}` });
    await waitUntil(
      () => events("route=bulk&state=failed"),
      (found) => found.length === 3,
    );
    const query = { route: "bulk", type: "bulk", text: "number" };
    const plan = (await call("POST", "/replays", { ...query, dry_run: true })).body.result;
    expect(plan).toMatchObject({ count: 3, routes: [{ source: "quiet", route: "bulk", count: 3 }] });
    expect(Date.parse(plan.oldest)).toBeLessThanOrEqual(Date.parse(plan.newest));
    expect(
      (await call("POST", "/replays", { ...query, text: "number 1", dry_run: true })).body.result.count,
    ).toBe(1);
    answers["/bulk"] = [{ status: 200 }];
    const created = (await call("POST", "/replays", query)).body.result;
    expect(created).toMatchObject({ total: 3, query: { route: "bulk", state: "failed" } });
    const done = await waitUntil(
      () => get<Row & { results: Row }>(`/replays/${String(created.id)}`),
      ({ results }) => results["delivered"] === 3,
    );
    expect(done).toMatchObject({ state: "done", queued: 3, skipped: 0, results: { waiting: 0, failed: 0 } });
    expect(await events(`replay=${String(created.id)}`)).toHaveLength(3);
    expect((await get<Row[]>("/replays"))[0]?.["id"]).toBe(created.id);
    await call("DELETE", "/sources/quiet/routes/bulk");
  });

  it("ignored events are replayed if the mended filter matches, and others are skipped", async () => {
    await put("quiet", "mended", { when: { body: { kind: "wrong" } }, to: { url: at("/mended") } });
    await send("quiet", { kind: "right" });
    await send("quiet", { kind: "other" });
    await put("quiet", "mended", { when: { body: { kind: "right" } }, to: { url: at("/mended") } });
    const created = (await call("POST", "/replays", { route: "mended", state: "ignored" })).body.result;
    const done = await waitUntil(
      () => get<Row & { results: Row }>(`/replays/${String(created.id)}`),
      ({ results }) => results["delivered"] === 1,
    );
    expect(done).toMatchObject({ state: "done", total: 2, queued: 1, skipped: 1 });
    expect(to("/mended").map(({ body }) => (JSON.parse(body) as Row)["kind"])).toEqual(["right"]);
    await call("DELETE", "/sources/quiet/routes/mended");
  });

  it("a cancelled replay cancels what it has queued and what has not been delivered", async () => {
    await put("quiet", "cancel", { when: { body: { never: true } }, to: { url: at("/cancel") } });
    await send("quiet", { a: 1 });
    await put("quiet", "cancel", { to: { url: at("/cancel") }, paused: true });
    const created = (await call("POST", "/replays", { route: "cancel", state: "ignored" })).body.result;
    await waitUntil(
      () => events(`replay=${String(created.id)}&state=held`),
      (found) => found.length === 1,
    );
    expect((await call("POST", `/replays/${String(created.id)}/cancel`)).status).toBe(200);
    expect(await events(`replay=${String(created.id)}`)).toMatchObject([
      { state: "cancelled", reason: "the replay was cancelled" },
    ]);
    await call("POST", "/sources/quiet/routes/cancel/resume");
    expect(to("/cancel")).toEqual([]);
    await call("DELETE", "/sources/quiet/routes/cancel");
  });

  it("a delivered event of an agent runs again when it is replayed", async () => {
    const { id, delivery } = await send("orders", { type: "again" });
    await settled(`delivery=${delivery}`, { agent: "delivered" });
    const [event] = await events(`delivery=${delivery}&route=agent`);
    await call("POST", `/events/${String(event?.["id"])}/replay`);
    await waitUntil(
      () => eventIds(server, "cust", "webhook-agent"),
      (ids) => ids.filter((one) => one.startsWith(`${id}#replay-`)).length === 1,
    );
  });

  it("a delivery with a name is fired again as a new one", async () => {
    const { id, delivery } = await send("orders", { type: "sample", total: 1 });
    await settled(`delivery=${delivery}`, { all: "delivered" });
    expect((await call("PUT", "/examples/first-order", { delivery })).status).toBe(200);
    const fired = (await call("POST", "/examples/first-order/fire")).body.result;
    expect(fired).toMatchObject({ status: 202 });
    expect(fired.delivery).not.toBe(delivery);
    await settled(`delivery=${String(fired.delivery)}`, { all: "delivered", agent: "delivered" });
    expect(to("/all").map(({ body }) => (JSON.parse(body) as Row)["id"])).toEqual([id, id]);
    expect(await get("/examples")).toMatchObject([{ name: "first-order", source: "orders", type: "sample" }]);
    expect((await call("DELETE", "/examples/first-order")).status).toBe(200);
  });
});

it("another account sees and changes nothing of routes, events, replays and examples", async () => {
  await server.api("POST", "/accounts", { id: "other" });
  const token = await server.token(["webhooks.read", "webhooks.edit"], { account: "other" });
  const [event] = await events("source=orders&limit=1");
  for (const [method, path] of [
    ["GET", "/sources/orders/routes"],
    ["PUT", "/sources/orders/routes/mine"],
    ["GET", "/sources/orders/routes/all"],
    ["POST", "/sources/orders/routes/all/pause"],
    ["GET", `/events/${String(event?.["id"])}`],
    ["POST", `/events/${String(event?.["id"])}/replay`],
  ] as const) {
    const body = method === "PUT" ? { to: { agent: "webhook-agent" } } : undefined;
    const answer = await server.api(method, `/accounts/other/webhooks${path}`, body, token);
    expect([path, answer.status]).toEqual([path, 404]);
  }
  expect((await server.api("GET", "/accounts/other/webhooks/events", undefined, token)).body.result).toEqual(
    [],
  );
});
