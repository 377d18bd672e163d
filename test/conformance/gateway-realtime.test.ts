/** Realtime sessions through a gateway: authentication, stored keys, limits, usage and the row of a session. */
import { describe, expect, it } from "vitest";
import { sendJson, startProvider } from "../peers/provider.ts";
import { respond, send, serveLikeOpenAi, USAGE } from "../peers/realtime.ts";
import { setGateway } from "../support/gateway.ts";
import { readMetric } from "../support/read-metric.ts";
import { own, useRealtimeGateway } from "../support/realtime-gateway.ts";
import { openSession, refusedSession } from "../support/realtime.ts";
import { startTestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const CREATE = { type: "response.create" };
/** What the peer reports, at the gateway's prices: 60 text and 40 sound tokens in, 50 text and 150 sound tokens out. */
const COST = (60 * 4 + 40 * 32 + 50 * 16 + 150 * 64) / 1e6;

const gateway = useRealtimeGateway();
const { store, mint, rowsSoFar, openRows } = gateway;

describe("authentication and keys", () => {
  it.each<[string, (token: string) => { headers?: Record<string, string>; protocols?: string[] }]>([
    ["the gateway's header", (token) => own(token)],
    [
      "Authorization, where OpenAI's client puts its key",
      (token) => ({ headers: { authorization: `Bearer ${token}` } }),
    ],
    [
      "the sub-protocol of OpenAI's browser client",
      (token) => ({ protocols: ["realtime", `openai-insecure-api-key.${token}`] }),
    ],
    [
      "a sub-protocol of the gateway",
      (token) => ({ protocols: ["realtime", `cf-aig-authorization.${token}`] }),
    ],
  ])("accepts a token in %s and sends the stored key", async (_, place) => {
    const { token } = await mint();
    const { protocols, ...options } = place(token);
    const client = await openSession(gateway.url, {
      ...options,
      ...(protocols === undefined ? {} : { protocols }),
    });
    await client.event("session.created");
    const [request] = gateway.peer.handshakes;
    expect(request?.url).toBe("/v1/realtime?model=gpt-realtime");
    expect(request?.headers.authorization).toBe("Bearer stored-key");
    expect(request?.headers["sec-websocket-protocol"]).toBe(protocols === undefined ? undefined : "realtime");
    expect(JSON.stringify(request?.headers)).not.toContain("sbx_");
    expect(client.socket.protocol).toBe(protocols === undefined ? "" : "realtime");
    client.socket.close();
    await client.closed;
  });

  it("passes the caller's own key on, from a sub-protocol, too", async () => {
    const { token } = await mint();
    const client = await openSession(gateway.url, {
      ...own(token),
      protocols: ["realtime", "openai-insecure-api-key.sk-own"],
    });
    expect(gateway.peer.handshakes[0]?.headers.authorization).toBe("Bearer sk-own");
    client.socket.close();
    await client.closed;
  });

  it("serves Gemini's path with a token in the query, which does not go upstream", async () => {
    const { token } = await mint();
    gateway.peer.serve = ({ socket }) => {
      socket.on("message", (data: Buffer) => {
        const message = JSON.parse(data.toString()) as Record<string, unknown>;
        if ("setup" in message) socket.send(Buffer.from('{"setupComplete":{}}'), { binary: true });
        if (!("clientContent" in message)) return;
        send(socket, { serverContent: { modelTurn: { parts: [{ text: "Hi" }] } } });
        send(socket, {
          serverContent: { turnComplete: true },
          usageMetadata: { promptTokenCount: 10, responseTokenCount: 20, totalTokenCount: 30 },
        });
      });
    };
    const before = await rowsSoFar();
    const path = "ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent";
    const client = await openSession(`${gateway.server.url}/v1/default/default/google/${path}?key=${token}`);
    client.send({ setup: { model: "models/gemini-live" } });
    await waitUntil(
      () => client.events.length,
      (count) => count === 1,
    );
    client.send({
      clientContent: { turns: [{ role: "user", parts: [{ text: "Hello" }] }], turnComplete: true },
    });
    await waitUntil(
      () => client.events.length,
      (count) => count === 3,
    );
    client.socket.close();
    expect(gateway.peer.handshakes[0]?.url).toBe(`/${path}`);
    expect(gateway.peer.handshakes[0]?.headers["x-goog-api-key"]).toBe("stored-google-key");
    const [row] = await openRows(before + 1);
    expect(row).toMatchObject({
      provider: "google-ai-studio",
      model: "gemini-live",
      tokens_in: 10,
      tokens_out: 20,
    });
    expect(row?.["cost"]).toBeCloseTo((10 * 1 + 20 * 2) / 1e6, 12);
  });

  it("tries the next key of a pool when the provider refuses one", async () => {
    await store("groq", "bad", 1000);
    await store("groq", "good");
    gateway.peer.refuse = (request) =>
      request.headers.authorization === "Bearer bad" ? { status: 401, body: '{"error":"no"}' } : null;
    const { token } = await mint();
    const tried = () => gateway.peer.handshakes.map(({ headers }) => headers.authorization);
    // One session of a thousand gets the good key at once, which shows nothing.
    do {
      gateway.peer.handshakes.length = 0;
      const client = await openSession(gateway.url.replace("openai", "groq"), own(token));
      client.socket.close();
      await client.closed;
    } while (tried()[0] === "Bearer good");
    expect(tried()).toEqual(["Bearer bad", "Bearer good"]);
  });

  it("passes a refusal of the provider on, with its status and text, and records it", async () => {
    const { token } = await mint();
    const before = await rowsSoFar();
    gateway.peer.refuse = () => ({
      status: 429,
      body: '{"error":{"message":"slow down"}}',
      headers: "retry-after: 7\r\n",
    });
    const refusal = await refusedSession(gateway.url, {
      headers: { ...own(token).headers, authorization: "Bearer sk" },
    });
    expect(refusal).toMatchObject({ status: 429, body: '{"error":{"message":"slow down"}}' });
    expect(refusal.headers).toMatchObject({ "gw-aig-error-origin": "provider", "retry-after": "7" });
    const [row] = await openRows(before + 1);
    expect(row).toMatchObject({ status_code: 429, success: false, model: "gpt-realtime" });
  });

  it("answers 502 when the provider cannot be reached", async () => {
    const { token } = await mint();
    const gone = await startTestServer({
      file: { providers: { openai: { baseUrl: "http://127.0.0.1:9/v1" } } },
    });
    const refusal = await refusedSession(`${gone.url}/v1/default/default/openai/realtime?model=x`, {
      headers: { authorization: "Bearer sk" },
    });
    expect(refusal.status).toBe(502);
    expect(JSON.parse(refusal.body)).toMatchObject({ error: [{ code: 2005 }] });
    expect(token).not.toBe("");
    await gone.stop();
  });
});

/** What `/metrics` shows may be some milliseconds old. */
const metricIs = (name: string, wanted: number) =>
  waitUntil(
    () => readMetric(gateway.server, name),
    (value) => value === wanted,
  );

describe("usage", () => {
  it("one row a session, with the usage and cost of its responses", async () => {
    const { token } = await mint();
    const before = await rowsSoFar();
    await metricIs("signalbox_gateway_sessions", 0);
    const tokens = await readMetric(gateway.server, "signalbox_gateway_tokens_total");
    const client = await openSession(gateway.url, {
      headers: { ...own(token).headers, "gw-aig-metadata": '{"team":"voice"}' },
    });
    for (let n = 1; n <= 2; n++) {
      client.send(CREATE);
      await waitUntil(
        () => client.events.filter(({ type }) => type === "response.done").length,
        (count) => count === n,
      );
    }
    await metricIs("signalbox_gateway_sessions", 1);
    client.socket.close(1000, "done");
    const rows = await openRows(before + 1);
    expect(rows).toHaveLength(before + 1);
    expect(rows[0]).toMatchObject({
      provider: "openai",
      model: "gpt-realtime",
      path: "realtime",
      request_type: "realtime",
      status_code: 101,
      success: true,
      tokens_in: 200,
      tokens_out: 400,
      metadata: '{"team":"voice"}',
    });
    expect(rows[0]?.["cost"]).toBeCloseTo(2 * COST, 12);
    await metricIs("signalbox_gateway_tokens_total", tokens + 600);
    const { body } = await gateway.server.api(
      "GET",
      `/accounts/default/ai-gateway/gateways/default/logs/${String(rows[0]?.["id"])}/response`,
    );
    const usages = JSON.stringify(body).match(/gateway\.response\.usage/g);
    expect(usages).toHaveLength(2);
  });

  it("a response that the provider begins by itself is counted, too", async () => {
    const { token } = await mint();
    const before = await rowsSoFar();
    gateway.peer.serve = (session) => {
      serveLikeOpenAi(session);
      session.socket.once("message", () => respond(session.socket));
    };
    const client = await openSession(gateway.url, own(token));
    client.send({ type: "input_audio_buffer.append", audio: "AAAA" });
    await client.event("response.done");
    client.socket.close();
    expect((await openRows(before + 1))[0]).toMatchObject({ tokens_in: 100, tokens_out: 200 });
  });

  it("a client that leaves in the middle of a response is charged with an estimate", async () => {
    const { token } = await mint();
    const before = await rowsSoFar();
    gateway.peer.serve = ({ socket }) =>
      socket.on("message", () => send(socket, { type: "response.created", response: {} }));
    const client = await openSession(gateway.url, own(token));
    client.send(CREATE);
    await client.event("response.created");
    client.socket.terminate();
    const [row] = await openRows(before + 1);
    expect(row).toMatchObject({ usage: "estimated", tokens_out: 4096 });
  });

  it("a dialect that is not known is relayed as it is, text and bytes", async () => {
    const { token } = await mint();
    const before = await rowsSoFar();
    gateway.peer.serve = ({ socket }) =>
      socket.on("message", (data: Buffer, isBinary: boolean) => socket.send(data, { binary: isBinary }));
    const client = await openSession(`${gateway.server.url}/v1/default/default/deepgram/v1/listen`, {
      headers: { ...own(token).headers, authorization: "Token dg" },
    });
    const received: [string, boolean][] = [];
    client.socket.removeAllListeners("message");
    client.socket.on("message", (data: Buffer, isBinary: boolean) =>
      received.push([data.toString("hex"), isBinary]),
    );
    client.socket.send(Buffer.from([0, 255, 1]));
    client.socket.send("text");
    await waitUntil(
      () => received.length,
      (count) => count === 2,
    );
    expect(received).toEqual([
      ["00ff01", true],
      [Buffer.from("text").toString("hex"), false],
    ]);
    client.socket.close();
    expect((await openRows(before + 1))[0]).toMatchObject({ provider: "deepgram", usage: "unknown" });
  });
});

describe("limits", () => {
  it("a budget that is used up ends the session with an error event and 1008", async () => {
    const { token } = await mint({ budgets: [{ limit: COST * 1.5, window: 30 * 86_400 }] });
    const before = await rowsSoFar();
    const client = await openSession(gateway.url, own(token));
    client.send(CREATE);
    await client.event("response.done");
    client.send(CREATE);
    await waitUntil(
      () => client.events.filter(({ type }) => type === "response.done").length,
      (count) => count === 2,
    );
    client.send({ ...CREATE, event_id: "mine" });
    expect(await client.event("error")).toMatchObject({
      error: { type: "gateway_error", code: "2041", event_id: "mine" },
    });
    expect((await client.closed).code).toBe(1008);
    expect(gateway.peer.sessions[0]?.messages).toHaveLength(2);
    expect((await openRows(before + 1))[0]).toMatchObject({
      success: false,
      status_code: 429,
      tokens_in: 200,
    });
  });

  it("a rate limit refuses one response, and the session goes on", async () => {
    const { token } = await mint({ rate_limits: [{ type: "requests", limit: 2, interval: 30 * 86_400 }] });
    const client = await openSession(gateway.url, own(token));
    client.send(CREATE);
    await client.event("response.done");
    client.send(CREATE);
    await waitUntil(
      () => client.events.filter(({ type }) => type === "response.done").length,
      (count) => count === 2,
    );
    client.send(CREATE);
    expect(await client.event("error")).toMatchObject({ error: { code: "2003" } });
    client.send({ type: "session.update", session: {} });
    await client.event("session.updated");
    client.socket.close();
    await client.closed;
  });

  it("a session counts as a running call", async () => {
    const { token } = await mint({ rate_limits: [{ type: "parallel", limit: 1 }] });
    const client = await openSession(gateway.url, own(token));
    expect((await refusedSession(gateway.url, own(token))).status).toBe(429);
    client.socket.close();
    await client.closed;
    const again = await waitUntil(
      () => openSession(gateway.url, own(token)).catch(() => null),
      (found) => found !== null,
    );
    again?.socket.close();
    await again?.closed;
  });
});

it("the peer reports the usage that these tests expect", () => {
  expect(USAGE.input_tokens + USAGE.output_tokens).toBe(USAGE.total_tokens);
});

describe("a socket at the universal endpoint", () => {
  const MESSAGES = [{ role: "user", content: "Hello" }];
  const create = (eventId: string, query: object, rest: object = {}) => ({
    type: "universal.create",
    request: { eventId, provider: "echo", endpoint: "chat/completions", headers: {}, query, ...rest },
  });
  const openSocket = (options: Parameters<typeof openSession>[1]) =>
    openSession(`${gateway.server.url}/v1/default/default/`, options);
  type Event = {
    readonly type: string;
    readonly metadata: Record<string, unknown>;
    readonly response?: unknown;
  };
  const eventsOf = (client: Awaited<ReturnType<typeof openSocket>>, id: string) =>
    (client.events as unknown as Event[]).filter(({ metadata }) => metadata["eventId"] === id);
  const waitFor = (client: Awaited<ReturnType<typeof openSocket>>, id: string, type: string) =>
    waitUntil(
      () => eventsOf(client, id).find((event) => event.type === type),
      (event) => event !== undefined,
    );

  it("answers each message as the endpoint answers a request, with a row for each", async () => {
    const { token } = await mint();
    const before = await rowsSoFar();
    const client = await openSocket(own(token));
    client.send(create("one", { model: "echo", messages: MESSAGES }));
    client.send(create("two", { model: "echo", messages: MESSAGES, stream: true }));
    client.send(create("three", { model: "x" }, { provider: "nowhere" }));
    const whole = await waitFor(client, "one", "universal.created");
    const rows = await openRows(before + 2);
    const row = rows.find(({ id }) => id === whole?.metadata["logId"]);
    expect(row).toMatchObject({ provider: "echo", event_id: "one" });
    expect(whole).toMatchObject({
      metadata: {
        status: 200,
        step: "0",
        contentType: expect.stringContaining("application/json") as string,
      },
      response: { object: "chat.completion", choices: [{ message: { content: "Hello" } }] },
    });
    await waitFor(client, "two", "universal.done");
    const streamed = eventsOf(client, "two");
    expect([streamed[0]?.type, streamed[0]?.response, streamed.at(-1)?.type]).toEqual([
      "universal.created",
      undefined,
      "universal.done",
    ]);
    const chunks = streamed.slice(1, -1);
    expect(new Set(chunks.map(({ type }) => type))).toEqual(new Set(["universal.stream"]));
    const texts = chunks.map(
      ({ response }) =>
        (response as { choices: { delta?: { content?: string } }[] }).choices[0]?.delta?.content ?? "",
    );
    expect(texts.join("")).toBe("Hello");
    expect(await waitFor(client, "three", "universal.created")).toMatchObject({
      metadata: { status: 400 },
      response: { success: false, error: [{ code: 2008 }] },
    });
    client.socket.close();
    await client.closed;
  });

  it("has its calls searched by the guardrails", async () => {
    const path = "/accounts/default/ai-gateway/gateways/default/guardrails";
    const { token } = await mint();
    const client = await openSocket(own(token));
    const rules = [{ id: "animals", type: "words", words: ["zebra"], action: "block" }];
    await gateway.server.api("PUT", path, { rules });
    try {
      client.send(create("one", { model: "echo", messages: [{ role: "user", content: "a zebra" }] }));
      expect(await waitFor(client, "one", "universal.created")).toMatchObject({
        metadata: { status: 424 },
        response: { success: false, error: [{ code: 2016 }] },
      });
    } finally {
      await gateway.server.api("PUT", path, { rules: [] });
    }
    client.socket.close();
    await client.closed;
  });

  it("refuses messages that are no calls, and goes on", async () => {
    const { token } = await mint();
    const client = await openSocket(own(token));
    for (const wrong of [
      "{",
      '"x"',
      '{"type":"response.create"}',
      '{"type":"universal.create","request":[]}',
    ]) {
      client.socket.send(wrong);
    }
    client.send(create("\n", {}));
    await waitUntil(
      () => client.events.length,
      (count) => count === 5,
    );
    for (const event of client.events) expect(event).toMatchObject({ type: "error", error: { code: 2002 } });
    client.send(create("after", { model: "echo", messages: MESSAGES }));
    expect(await waitFor(client, "after", "universal.created")).toMatchObject({ metadata: { status: 200 } });
    client.socket.close();
    await client.closed;
  });

  it("needs the token of its gateway, and closes when the token ends", async () => {
    await setGateway(gateway.server, { authentication: true });
    const url = `${gateway.server.url}/v1/default/default`;
    expect((await refusedSession(url)).status).toBe(401);
    expect((await refusedSession(`${gateway.server.url}/v1/default/nowhere`)).status).toBe(400);
    const { id, token } = await mint();
    const client = await openSession(url, { protocols: [`cf-aig-authorization.${token}`] });
    client.send(create("one", { model: "echo", messages: MESSAGES }));
    expect(await waitFor(client, "one", "universal.created")).toMatchObject({ metadata: { status: 200 } });
    await gateway.server.api("DELETE", `/accounts/default/tokens/${id}`);
    expect((await client.closed).code).toBe(4401);
  });
});

describe("guardrails", () => {
  const path = "/accounts/default/ai-gateway/gateways/default/guardrails";
  const rules = [
    { id: "animals", on: ["prompt"], type: "words", words: ["zebra"], action: "block" },
    { id: "mail", on: ["prompt"], type: "pii", kinds: ["email"], action: "mask" },
    { id: "sea", on: ["response"], type: "words", words: ["walrus"], action: "block" },
  ];
  const item = (text: string) => ({
    type: "conversation.item.create",
    item: { type: "message", role: "user", content: [{ type: "input_text", text }] },
  });

  /** Refuses texts with a word, and keeps what it was asked about. */
  async function startJudge() {
    const asked: { place: string; text: string }[] = [];
    const receiver = await startProvider(({ body }, response) => {
      const { place, text } = JSON.parse(body) as { place: string; text: string };
      asked.push({ place, text });
      sendJson(response, 200, { flagged: /volcano|eruption/.test(text) });
    });
    return {
      asked,
      rule: {
        id: "judge",
        type: "webhook",
        url: `${receiver.url}/judge`,
        action: "block",
        timeout_ms: 60_000,
      },
      close: () => receiver.close(),
    };
  }
  const saying = (...parts: string[]) => [
    ...parts.map((delta) => ({ type: "response.output_text.delta", item_id: "i", delta })),
    { type: "response.output_text.done", item_id: "i", text: parts.join("") },
    { type: "response.done", response: { status: "completed", usage: USAGE } },
  ];

  it.each(["window", "hold"])(
    "that ask a judge hold messages until its verdict (stream: %s), and what it refuses does not leave",
    async (stream) => {
      const { token } = await mint();
      const judge = await startJudge();
      const received: string[] = [];
      gateway.peer.serve = ({ socket }) => {
        send(socket, { type: "session.created", session: {} });
        socket.on("message", (data: Buffer) => {
          received.push(data.toString());
          const parts = data.includes("calm")
            ? ["The sea", " is", " calm."]
            : ["An erup", "tion", " begins."];
          for (const event of saying(...parts)) send(socket, event);
        });
      };
      await gateway.server.api("PUT", path, { rules: [{ ...judge.rule, stream }] });
      const before = await rowsSoFar();
      try {
        const client = await openSession(gateway.url, own(token));
        await client.event("session.created");
        client.send(item("a volcano"));
        expect(await client.event("error")).toMatchObject({ error: { code: "2016" } });
        expect(received).toEqual([]);
        client.send(item("a calm sea"));
        await client.event("response.done");
        const said = client.events.filter(({ type }) => type === "response.output_text.delta");
        expect(said.map(({ delta }) => delta as string).join("")).toBe("The sea is calm.");
        // What the end of the answer repeats is no other question.
        expect(judge.asked).toEqual([
          { place: "prompt", text: "a volcano" },
          { place: "prompt", text: "a calm sea" },
          { place: "response", text: "The sea is calm." },
        ]);
        client.send(item("a mountain"));
        expect(await client.closed).toMatchObject({ code: 1008 });
        expect(JSON.stringify(client.events)).not.toMatch(/erup|begins/);
        expect(client.events.at(-1)).toMatchObject({ type: "error", error: { code: "2017" } });
        const [row] = await openRows(before + 1);
        expect(row).toMatchObject({ guardrail_action: "block" });
      } finally {
        await gateway.server.api("PUT", path, { rules: [] });
        await judge.close();
      }
    },
  );

  it("whose judge gives no verdict refuse the messages of a session, unless the rule lets them pass", async () => {
    const { token } = await mint();
    const received: string[] = [];
    gateway.peer.serve = ({ socket }) => {
      send(socket, { type: "session.created", session: {} });
      socket.on("message", (data: Buffer) => received.push(data.toString()));
    };
    const rule = { id: "judge", on: ["prompt"], type: "model", model: "openai/guard", action: "block" };
    try {
      const client = await openSession(gateway.url, own(token));
      await client.event("session.created");
      await gateway.server.api("PUT", path, { rules: [rule] });
      client.send(item("Hello"));
      const refused = await client.event("error");
      expect(JSON.stringify(refused)).toContain("7013");
      expect(received).toEqual([]);
      await gateway.server.api("PUT", path, { rules: [{ ...rule, on_failure: "allow" }] });
      client.send(item("Hello"));
      await waitUntil(
        () => received.length,
        (count) => count === 1,
      );
      client.socket.close();
      await client.closed;
    } finally {
      await gateway.server.api("PUT", path, { rules: [] });
    }
  });

  it("leave out a blocked message, mask for the provider, and put masks back, also if they are split", async () => {
    const { token } = await mint();
    gateway.peer.serve = ({ socket }) => {
      send(socket, { type: "session.created", session: {} });
      socket.on("message", (data: Buffer) => {
        const mask = /<EMAIL_1>/.exec(data.toString())?.[0];
        if (mask === undefined) return;
        for (const delta of ["Hi ", ...Array.from(mask), "."])
          send(socket, {
            type: "response.output_text.delta",
            item_id: "i",
            output_index: 0,
            content_index: 0,
            delta,
          });
        send(socket, { type: "response.done", response: { status: "completed", usage: USAGE } });
      });
    };
    const before = await rowsSoFar();
    try {
      const client = await openSession(gateway.url, own(token));
      await client.event("session.created");
      // The session began without rules.
      await gateway.server.api("PUT", path, { rules: rules.map((rule) => ({ ...rule, logs: "masked" })) });
      client.send(item("a zebra"));
      expect(await client.event("error")).toMatchObject({ error: { code: "2016" } });
      client.send(item("I am ada@example.org"));
      await client.event("response.done");
      const [session] = gateway.peer.sessions;
      expect(session?.messages.join("")).not.toMatch(/zebra|ada@/);
      const said = client.events.map(({ delta = "" }) => delta as string).join("");
      expect(said).toBe("Hi ada@example.org.");
      // The transcript has all of the session, also if the rules are gone at its end.
      await gateway.server.api("PUT", path, { rules: [] });
      client.socket.close();
      await client.closed;
      const [row] = await openRows(before + 1);
      const logs = "/accounts/default/ai-gateway/gateways/default/logs";
      for (const side of ["request", "response"]) {
        const { body } = await gateway.server.api("GET", `${logs}/${String(row?.["id"])}/${side}`);
        if (side === "request") expect(JSON.stringify(body)).toContain("<EMAIL_1>");
        expect(JSON.stringify(body)).not.toMatch(/ada@|example\.org/);
      }
    } finally {
      await gateway.server.api("PUT", path, { rules: [] });
    }
  });

  it("of the header gw-aig-guardrails hold for the session, beside those of the gateway; others are refused before the provider is dialled", async () => {
    const { token } = await mint();
    const received: string[] = [];
    gateway.peer.serve = ({ socket }) => {
      send(socket, { type: "session.created", session: {} });
      socket.on("message", (data: Buffer) => received.push(data.toString()));
    };
    const asking = (value: string) => ({
      headers: { ...own(token).headers, "gw-aig-guardrails": value },
    });
    await gateway.server.api("PUT", path, { rules });
    try {
      const client = await openSession(gateway.url, asking("ip=mask, email=flag, iban=block"));
      await client.event("session.created");
      client.send(item("a zebra"));
      await client.event("error");
      client.send(item("IBAN GB33BUKB20201555555555"));
      await waitUntil(
        () => client.events.filter(({ type }) => type === "error").length,
        (count) => count === 2,
      );
      client.send(item("I am ada@example.org at 192.0.2.77"));
      await waitUntil(
        () => received.length,
        (count) => count === 1,
      );
      // The gateway masks addresses, and a header that only notes them changes nothing.
      expect(received[0]).toContain("I am <EMAIL_1> at <IP_1>");
      client.socket.close();
      await client.closed;
      const plain = await openSession(gateway.url, own(token));
      await plain.event("session.created");
      plain.send(item("IBAN GB33BUKB20201555555555 from 192.0.2.77"));
      await waitUntil(
        () => received.length,
        (count) => count === 2,
      );
      expect(received[1]).toContain("IBAN GB33BUKB20201555555555 from 192.0.2.77");
      plain.socket.close();
      await plain.closed;
      const handshakes = gateway.peer.handshakes.length;
      for (const wrong of ["email", "email=pass", "nothing=block"])
        expect((await refusedSession(gateway.url, asking(wrong))).status).toBe(400);
      expect(gateway.peer.handshakes).toHaveLength(handshakes);
    } finally {
      await gateway.server.api("PUT", path, { rules: [] });
    }
  });

  it("keep a blocked text out of the transcript", async () => {
    const { token } = await mint();
    gateway.peer.serve = ({ socket }) => {
      send(socket, { type: "session.created", session: {} });
      const output = [{ type: "message", content: [{ type: "output_text", text: "The walrus sings" }] }];
      send(socket, { type: "response.done", response: { status: "completed", output, usage: USAGE } });
    };
    await gateway.server.api("PUT", path, { rules });
    const before = await rowsSoFar();
    try {
      const client = await openSession(gateway.url, own(token));
      expect(await client.closed).toMatchObject({ code: 1008 });
      const [row] = await openRows(before + 1);
      const { body } = await gateway.server.api(
        "GET",
        `/accounts/default/ai-gateway/gateways/default/logs/${String(row?.["id"])}/response`,
      );
      const kept = JSON.stringify(body);
      expect(kept).toContain("session.created");
      expect(kept).not.toContain("sings");
    } finally {
      await gateway.server.api("PUT", path, { rules: [] });
    }
  });

  it("end a session before a blocked text leaves", async () => {
    const { token } = await mint();
    gateway.peer.serve = ({ socket }) => {
      for (const delta of ["The wal", "rus ", "sings"])
        send(socket, { type: "response.output_text.delta", output_index: 0, delta });
    };
    await gateway.server.api("PUT", path, { rules });
    try {
      const client = await openSession(gateway.url, own(token));
      expect(await client.closed).toMatchObject({ code: 1008 });
      expect(JSON.stringify(client.events)).not.toMatch(/wal|sings/);
      expect(client.events.at(-1)).toMatchObject({ type: "error", error: { code: "2017" } });
    } finally {
      await gateway.server.api("PUT", path, { rules: [] });
    }
  });
});
