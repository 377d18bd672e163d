/** `signalbox webhooks listen`: the program on a laptop receives what arrived, also while it slept, and its answers are attempts. */
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import Stripe from "stripe";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { runCommand } from "../support/run-cli.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";
import { post, SECRET, sendGeneric } from "../support/webhook-sender.ts";

const stripe = new Stripe("sk_test_x");
const BASE = "/accounts/default/webhooks";

let server: TestServer;
let laptop: Server;
let received: { url: string; headers: IncomingHttpHeaders; body: Buffer }[] = [];
let status = 200;
let port = "";
/** Requests of the laptop that run at a time. */
let running = 0;
let mostRunning = 0;

beforeAll(async () => {
  server = await startTestServer({
    environment: {
      WEBHOOK_SECRET: SECRET,
      STRIPE_WEBHOOK_SECRET: SECRET,
      ROUTED_WEBHOOK_SECRET: SECRET,
      PAST_WEBHOOK_SECRET: SECRET,
    },
    file: {
      outgoing: { allowPrivateHosts: true },
      webhooks: {
        sources: {
          routed: {
            scheme: "generic",
            routes: [{ name: "production", to: { url: "http://127.0.0.1:9/" } }],
          },
          past: { scheme: "stripe", entity: "fixed:past" },
        },
      },
    },
  });
});
afterAll(() => server.stop());

beforeEach(async () => {
  received = [];
  status = 200;
  running = 0;
  mostRunning = 0;
  laptop = createServer((request, response) => {
    running += 1;
    mostRunning = Math.max(mostRunning, running);
    response.once("close", () => (running -= 1));
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.once("end", () => {
      received.push({ url: request.url ?? "", headers: request.headers, body: Buffer.concat(chunks) });
      response.writeHead(status, { "x-from": "laptop" }).end("answer of the laptop");
    });
  });
  await new Promise<void>((resolve) => laptop.listen(0, "127.0.0.1", resolve));
  port = String((laptop.address() as AddressInfo).port);
});
afterEach(async () => {
  laptop.closeAllConnections();
  await new Promise((resolve) => laptop.close(resolve));
});

const listen = (...args: string[]) =>
  runCommand(server, ["webhooks", "listen", `http://127.0.0.1:${port}`, ...args]);
const api = async <T>(method: string, path: string, body?: unknown): Promise<T> =>
  (await server.api(method, BASE + path, body)).body.result as T;
interface Shown {
  id: string;
  state: string;
  route: string;
  reason: string | null;
}
const events = (query: string) => api<Shown[]>("GET", `/events?${query}`);
const put = (name: string, body: object) =>
  api<{ waiting: number; not_kept: number }>("PUT", `/listeners/${name}`, body);

describe("a listener", () => {
  it("receives what arrived while it slept, oldest first, with the bytes and headers that the vendor's verifier needs", async () => {
    await put("sleeper", { sources: ["stripe"] });
    for (const n of [1, 2, 3]) {
      const body = `{ "id":"evt_${n}", "type":"invoice.paid","data":{"object":{"customer":"cus_1"}}, "text":"ü" }`;
      const header = stripe.webhooks.generateTestHeaderString({ payload: body, secret: SECRET });
      // The agent of the source still answers its sender.
      expect(
        (await post(`${server.url}/webhooks/stripe?a=${n}`, body, { "stripe-signature": header })).body,
      ).toEqual({
        status: "processed",
      });
    }
    await waitUntil(
      () => events("source=stripe&route=sleeper"),
      (rows) => rows.length === 3,
    );
    const { code, out, err } = await listen("stripe", "--name", "sleeper", "--limit", "3");
    expect([code, err.includes("3 waiting")]).toEqual([0, true]);
    expect(out.split("\n").filter((line) => line.includes("invoice.paid → 200"))).toHaveLength(3);
    expect(received.map(({ url }) => url).toSorted((a, b) => a.localeCompare(b))).toEqual([
      "/webhooks/stripe?a=1",
      "/webhooks/stripe?a=2",
      "/webhooks/stripe?a=3",
    ]);
    for (const { headers, body } of received) {
      const event = stripe.webhooks.constructEvent(body, headers["stripe-signature"] ?? "", SECRET);
      expect(event.type).toBe("invoice.paid");
    }
    const ended = await events("source=stripe&route=sleeper");
    expect(ended.map(({ state }) => state)).toEqual(["delivered", "delivered", "delivered"]);
    const shown = await api<{ attempt_list: { status: number; response: { body: string } }[] }>(
      "GET",
      `/events/${ended[0]?.id ?? ""}`,
    );
    expect(shown.attempt_list).toMatchObject([{ status: 200, response: { body: "answer of the laptop" } }]);
  });

  it("receives a replay, and a failure is one line and a failed attempt that is not repeated by itself", async () => {
    await put("failing", { sources: ["generic"] });
    status = 500;
    await sendGeneric(server.url, "device", { id: "f1", type: "broken" });
    const first = await listen("generic", "--name", "failing", "--limit", "1", "--path", "/hook");
    expect(first.code).toBe(1);
    expect(first.out.trim().split("\n")).toHaveLength(1);
    expect(first.out).toContain("broken → 500");
    expect(received.map(({ url }) => url)).toEqual(["/hook"]);
    const [event] = await events("source=generic&route=failing");
    expect(event).toMatchObject({ state: "failed", reason: "the listener answered 500" });
    status = 200;
    const second = listen("generic", "--name", "failing", "--limit", "1");
    await api("POST", `/events/${event?.id ?? ""}/replay`);
    expect((await second).out).toContain("(attempt 2)");
    expect(await events("source=generic&route=failing")).toMatchObject([{ state: "delivered" }]);
  });

  it("says that nothing listens at the port", async () => {
    await put("absent", { sources: ["generic"] });
    await sendGeneric(server.url, "device", { id: "a1", type: "t" });
    laptop.closeAllConnections();
    await new Promise((resolve) => laptop.close(resolve));
    const { code, out } = await listen("generic", "--name", "absent", "--limit", "1");
    expect([code, out.includes(`nothing listens at http://127.0.0.1:${port}`)]).toEqual([1, true]);
    await new Promise<void>((resolve) => laptop.listen(0, "127.0.0.1", resolve));
  });

  it("filters deliveries, and prints them as JSON", async () => {
    const filter = ["--filter-body", '{"type":{"$startsWith":"wanted."}}', "--json"];
    const running = listen("generic", "--name", "choosy", "--limit", "1", ...filter);
    await waitUntil(
      () => server.api("GET", `${BASE}/listeners/choosy`),
      (answer) => answer.status === 200,
    );
    await sendGeneric(server.url, "device", { id: "c1", type: "other" });
    await sendGeneric(server.url, "device", { id: "c2", type: "wanted.thing" });
    const { out } = await running;
    expect(JSON.parse(out)).toMatchObject({ type: "wanted.thing", status: 200, source: "generic" });
  });

  it("that begins with --since receives deliveries that were stored before it existed, and none that are older", async () => {
    await sendGeneric(server.url, "routed/one", { id: "s1", type: "early" });
    const { waiting } = await put("late", {
      sources: ["routed"],
      since: new Date(Date.now() - 60_000).toISOString(),
    });
    expect(waiting).toBe(1);
    const later = await put("late", {
      sources: ["routed"],
      since: new Date(Date.now() + 60_000).toISOString(),
    });
    expect(later.waiting).toBe(0);
  });

  it("that begins with --since receives what an agent had received before the source had any route, signed anew", async () => {
    const send = (id: string, text = "") => {
      const body = JSON.stringify({ id, type: "charge.paid", text });
      const header = stripe.webhooks.generateTestHeaderString({ payload: body, secret: SECRET });
      return post(`${server.url}/webhooks/past`, body, { "stripe-signature": header });
    };
    expect((await send("too-old")).body).toEqual({ status: "processed" });
    const sentAt = Date.now();
    const since = await waitUntil(
      () => Date.now(),
      (now) => now > sentAt,
      1,
    );
    for (const id of ["first", "second"]) expect((await send(id)).status).toBe(200);
    // A repetition, and what is too large for the list of deliveries.
    expect((await send("second")).body).toEqual({ status: "duplicate" });
    expect((await send("large", "x".repeat(300 * 1024))).status).toBe(200);
    expect(await events("source=past")).toEqual([]);
    const time = new Date(since).toISOString();
    const { code, out, err } = await listen("past", "--name", "historian", "--since", time, "--limit", "2");
    expect([code, err.includes("2 waiting"), err.includes("1 deliveries were larger")]).toEqual([
      0,
      true,
      true,
    ]);
    expect(out.split("\n").filter((line) => line.includes("charge.paid → 200"))).toHaveLength(2);
    const ids = received.map(({ headers, body }) => {
      return stripe.webhooks.constructEvent(body, headers["stripe-signature"] ?? "", SECRET).id;
    });
    expect(ids.toSorted((a, b) => a.localeCompare(b))).toEqual(["first", "second"]);
    // Once: another look finds what was sent.
    expect(await put("historian", { sources: ["past"], since: time })).toMatchObject({
      waiting: 0,
      not_kept: 1,
    });
    // The agent has each of them once, and the source still has no route of its own.
    expect((await send("after")).body).toEqual({ status: "processed" });
  });

  it("signs anew with --sign, prints failures only with --quiet, and has as many requests at a time as --max-connections", async () => {
    const options = ["stripe", "--sign", "--quiet", "--max-connections", "1", "--forget"];
    await put("signer", { sources: ["stripe"] });
    const earlier = Math.floor(Date.now() / 1000) - 200;
    for (const n of [1, 2, 3]) {
      const body = JSON.stringify({
        id: `evt_sign_${n}`,
        type: "t",
        data: { object: { customer: "cus_1" } },
      });
      const signing = { payload: body, secret: SECRET, timestamp: earlier };
      const header = stripe.webhooks.generateTestHeaderString(signing);
      await post(`${server.url}/webhooks/stripe`, body, { "stripe-signature": header });
    }
    await waitUntil(
      () => events("source=stripe&route=signer"),
      (rows) => rows.length === 3,
    );
    const { code, out } = await listen(...options, "--name", "signer", "--limit", "3");
    expect([code, out, mostRunning]).toEqual([0, "", 1]);
    for (const { headers, body } of received) {
      const header = headers["stripe-signature"] ?? "";
      expect(stripe.webhooks.constructEvent(body, header, SECRET).type).toBe("t");
      expect(Number(/t=(\d+)/.exec(String(header))?.[1])).toBeGreaterThan(earlier);
    }
    await put("failing-quietly", { sources: ["generic"] });
    await sendGeneric(server.url, "device", { id: "q1", type: "fails" });
    status = 500;
    const failed = await listen("generic", "--quiet", "--name", "failing-quietly", "--limit", "1");
    expect([failed.code, failed.out.includes("fails → 500")]).toEqual([1, true]);
  });

  it.each([
    [["--max-connections", "201"], "--max-connections: at most 200"],
    [["--max-connections", "0"], "--max-connections: expected a whole number above 0"],
    [["--since", "yesterday"], "--since: expected e.g. 30m, 2h, 1d or a time"],
    [["--filter-body", "{"], "--filter-body: expected JSON"],
    [["--instead-of", "production", "--since", "2h"], "instead_of: expected neither filters nor since"],
  ])("refuses %j", async (options, message) => {
    const { code, out, err } = await listen("routed", "--name", "wrong", ...options);
    expect([code === 0, out, err]).toEqual([false, "", expect.stringContaining(message)]);
    expect((await server.api("GET", `${BASE}/listeners/wrong`)).status).toBe(404);
  });

  it("takes a route instead of its target, and returns it at the end", async () => {
    const takeover = listen("routed", "--name", "taker", "--instead-of", "production", "--limit", "1");
    await waitUntil(
      () => api<{ listener: string | null }>("GET", "/sources/routed/routes/production"),
      ({ listener }) => listener === "taker",
    );
    await sendGeneric(server.url, "routed/two", { id: "t1", type: "taken" });
    expect((await takeover).out).toContain("taken → 200");
    const [event] = await events("source=routed&route=production&type=taken");
    expect(event?.state).toBe("delivered");
    expect(await api("GET", "/sources/routed/routes/production")).toMatchObject({ listener: null });
  });

  it("does not change the answer of a source's agent, and is removed with --forget", async () => {
    const running = listen("generic", "--name", "guest", "--limit", "1", "--forget");
    await waitUntil(
      () => server.api("GET", `${BASE}/listeners/guest`),
      (answer) => answer.status === 200,
    );
    const answer = await sendGeneric(server.url, "device", { id: "g1", type: "t" });
    expect([answer.status, answer.body]).toEqual([200, { status: "processed" }]);
    await running;
    expect((await server.api("GET", `${BASE}/listeners/guest`)).status).toBe(404);
  });

  it("of one account is none of another", async () => {
    await server.api("POST", "/accounts", { id: "strangers" });
    const path = `/accounts/strangers/webhooks/listeners/sleeper`;
    expect((await server.api("GET", path)).status).toBe(404);
    expect((await server.api("GET", `${path}/deliveries`)).status).toBe(404);
    expect((await server.api("PUT", path, { sources: ["stripe"] })).status).toBe(404);
    const reader = await server.token(["webhooks.read"]);
    expect((await server.api("GET", `${BASE}/listeners/sleeper/deliveries`, undefined, reader)).status).toBe(
      403,
    );
  });
});
