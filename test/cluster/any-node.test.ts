/** Any node takes any request: what a client sees does not depend on the node that it asks. */
import { join } from "node:path";
import { agentFetch } from "agents/client";
import { agentFetch as agentFetch14 } from "agents-14/client";
import { agentFetch as agentFetch3 } from "agents-3/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import {
  CLUSTER_ENVIRONMENT,
  type ClusterNodeProcess,
  startTestCluster,
  type TestCluster,
} from "../support/cluster.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { type Answer, readAnswer } from "../support/send-request.ts";
import { sendGeneric } from "../support/webhook-sender.ts";

const ROAMING_AGENTS = join(import.meta.dirname, "../fixtures/roaming-agents.ts");
const SECRET = CLUSTER_ENVIRONMENT["WEBHOOK_SECRET"] ?? "";

let cluster: TestCluster;
let nodes: ClusterNodeProcess[];
/** Answers calls of models, but for those that say so. */
let provider: ProviderPeer;
beforeAll(async () => {
  provider = await startProvider(({ body }, response) => {
    if (body.includes("never answer")) return;
    sendJson(response, 200, {
      id: String(provider.requests.length),
      model: "m",
      choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 1, completion_tokens: 1 },
    });
  });
  cluster = await startTestCluster({
    nodes: 2,
    file: {
      providers: { mistral: { baseUrl: provider.url } },
      // The agents count cancelled streams in memory.
      agents: { modules: [ROAMING_AGENTS], idleTimeoutMs: 3_600_000 },
      webhooks: {
        sources: { roamers: { scheme: "generic", agent: "roamer", secretVariable: "WEBHOOK_SECRET" } },
      },
    },
  });
  nodes = [...cluster.nodes];
});
afterAll(async () => {
  await cluster.stop();
  await provider.close();
});

/** `fetch` accepts headers in other forms, too. */
type Init = Omit<RequestInit, "headers"> & { headers?: Record<string, string> };

const call = async (node: number, name: string, method: string, args: unknown[] = []): Promise<Answer> =>
  at(node).api("POST", `/agents/roamer/${name}/rpc/${method}`, args);

function at(node: number): ClusterNodeProcess {
  const found = nodes[node % nodes.length];
  if (found === undefined) throw new Error("no node");
  return found;
}

/** The node that runs the instance, which the first call creates. */
async function ownerOf(name: string): Promise<number> {
  const { result } = (await call(0, name, "where")).body as { result: number };
  return nodes.findIndex(({ pid }) => pid === result);
}

/** What a client sees, without what differs from request to request. */
async function seen(node: number, path: string, init: Init = {}) {
  const response = await fetch(at(node).url + path, {
    ...init,
    headers: { authorization: `Bearer ${ROOT_TOKEN}`, ...init.headers },
  });
  const { status, headers, ...answer } = await readAnswer(response);
  const text = answer.text.replace(/request id: [\w-]+/, "request id");
  const shown = [...headers].filter(([name]) => name !== "date" && name !== "x-request-id");
  return { status, headers: shown, text: text.replaceAll(at(node).url.replace("http://", ""), "node") };
}

it("instances run on both nodes, each on one, whichever node is asked", async () => {
  const names = Array.from({ length: 24 }, (_, i) => `spread-${i}`);
  const owners = await Promise.all(names.map(ownerOf));
  expect(new Set(owners)).toEqual(new Set([0, 1]));
  for (const [i, name] of names.entries()) {
    const { result } = (await call(1, name, "where")).body as { result: number };
    expect(nodes.findIndex(({ pid }) => pid === result)).toBe(owners[i]);
  }
});

describe("HTTP and RPC", () => {
  const path = "/agents/roamer/http";
  const requests: [title: string, target: string, init?: Init][] = [
    ["a GET", `${path}/x%20y?a=1&token=t`],
    [
      "a GET with headers",
      path,
      { headers: { cookie: "a=b; c=d", "x-many": "1, 2", "accept-language": "de" } },
    ],
    ["HEAD", path, { method: "HEAD" }],
    ["a POST", `${path}/size`, { method: "POST", body: "ü".repeat(1000) }],
    ["a POST of 2 MB", `${path}/size`, { method: "POST", body: Buffer.alloc(2_000_000, "x") }],
    ["a POST without a body", `${path}/size`, { method: "POST" }],
    ["OPTIONS", path, { method: "OPTIONS" }],
    ["an answer of 3 MB", `${path}/large?bytes=3000000`],
    ["cookies, a status and headers", `${path}/cookies`],
    ["204", `${path}/nothing`],
    ["a failure", `${path}/fail`],
    ["a body that fails before its first byte", `${path}/broken-at-once`],
    ["an unknown agent", "/agents/nope/x"],
    ["an invalid name", "/agents/roamer/%01"],
    ["no token", path, { headers: { authorization: "" } }],
    ["a call", `${path}/rpc/echo`, { method: "POST", body: '[{"a":"ü\ud83c\udf75"}]' }],
    ["a call without a result", `${path}/rpc/nothing`, { method: "POST", body: "[]" }],
    [
      "a call that reads its request",
      `${path}/rpc/userAgent`,
      { method: "POST", headers: { "user-agent": "me" } },
    ],
    ["a call that fails", `${path}/rpc/fail`, { method: "POST", body: "[]" }],
    ["a call of an unknown method", `${path}/rpc/nope`, { method: "POST", body: "[]" }],
    ["a call that is not JSON", `${path}/rpc/echo`, { method: "POST", body: "{" }],
    ["a call by GET", `${path}/rpc/echo`],
  ];

  it.each<(typeof requests)[number]>(requests)(
    "%s has the same answer at both nodes",
    async (_title, target, init = {}) => {
      const [first, second] = [await seen(0, target, init), await seen(1, target, init)];
      expect(second).toEqual(first);
      expect(first.status).toBeLessThan(600);
    },
  );

  it.each([
    ["0.32.0", agentFetch],
    ["0.14.4", agentFetch14],
    ["0.3.2", agentFetch3],
  ])(
    "agentFetch of the original client %s reaches the instance through any node",
    async (_version, original) => {
      for (const node of [0, 1]) {
        const host = at(node).url.replace("http://", "");
        const response = await original(
          { agent: "Roamer", name: "fetched", host },
          { method: "GET", headers: { authorization: `Bearer ${ROOT_TOKEN}` } },
        );
        expect(await response.json()).toMatchObject({ name: "fetched", method: "GET" });
      }
    },
  );

  it("a write at one node is read at the other", async () => {
    for (let i = 0; i < 10; i++) {
      expect((await call(i, "shared", "increment")).body.result).toBe(i + 1);
      expect((await call(i + 1, "shared", "count")).body.result).toBe(i + 1);
    }
  });

  it("a caller with read access creates nothing, and learns nothing about an instance that does not exist", async () => {
    const { token } = (
      await at(0).api("POST", "/accounts/default/tokens", { name: "r", permissions: ["agents.read"] })
    ).body.result as { token: string };
    await call(0, "readable", "where");
    for (const node of [0, 1]) {
      expect((await at(node).api("GET", "/agents/roamer/readable", undefined, token)).status).toBe(200);
      const missing = await at(node).api("GET", "/agents/roamer/never-made", undefined, token);
      expect(missing.body.errors[0].code).toBe(3003);
      expect((await at(node).api("POST", "/agents/roamer/readable/rpc/where", [], token)).status).toBe(403);
    }
    const listed = await at(0).api("GET", "/accounts/default/agents/roamer/instances?search=never-made");
    expect(listed.body.result).toEqual([]);
  });
});

describe("streams", () => {
  async function open(node: number, name: string, path = "endless", token = ROOT_TOKEN) {
    const client = new AbortController();
    const response = await fetch(`${at(node).url}/agents/roamer/${name}/${path}`, {
      headers: { authorization: `Bearer ${token}` },
      signal: client.signal,
    });
    const reader = response.body?.getReader();
    if (reader === undefined) throw new Error("no body");
    return { response, reader, client };
  }

  it("an endless stream arrives piece by piece, and a client that leaves ends it at the owner", async () => {
    const owner = await ownerOf("endless");
    for (const node of [owner, owner + 1]) {
      const before = (await call(0, "endless", "cancelledStreams")).body.result as number;
      const { reader, client } = await open(node, "endless");
      let text = "";
      while (!text.includes("tick\ntick\n"))
        text += Buffer.from((await reader.read()).value ?? []).toString();
      expect(text.startsWith("begin\n")).toBe(true);
      client.abort();
      await expect
        .poll(async () => (await call(0, "endless", "cancelledStreams")).body.result as number)
        .toBe(before + 1);
    }
  });

  it("a stream that breaks off at the owner does not look complete", async () => {
    const owner = await ownerOf("broken");
    for (const node of [owner, owner + 1]) {
      const read = async () => {
        const { reader, response } = await open(node, "broken", "broken");
        // The failure may have overtaken the first bytes; then the client gets an error.
        expect(response.status).toBe(200);
        while (!(await reader.read()).done);
      };
      await expect(read()).rejects.toThrow();
    }
  });

  it("200 streams run at the same time", async () => {
    const owner = await ownerOf("many");
    const before = (await call(0, "many", "cancelledStreams")).body.result as number;
    const streams = await Promise.all(Array.from({ length: 200 }, () => open(owner + 1, "many")));
    for (const { reader } of streams)
      expect(Buffer.from((await reader.read()).value ?? []).toString()).toContain("begin");
    for (const { client } of streams) client.abort();
    await expect
      .poll(async () => (await call(0, "many", "cancelledStreams")).body.result as number)
      .toBe(before + 200);
  });

  it("a stream ends with the credential that opened it", async () => {
    const owner = await ownerOf("revoked");
    const tokens = "/accounts/default/tokens";
    const made = (await at(0).api("POST", tokens, { name: "t", permissions: ["agents.edit"] })).body
      .result as {
      id: string;
      token: string;
    };
    const { reader } = await open(owner + 1, "revoked", "endless", made.token);
    await reader.read();
    await at(owner).api("DELETE", `${tokens}/${made.id}`);
    await expect(
      (async () => {
        while (!(await reader.read()).done);
      })(),
    ).rejects.toThrow();
    await expect
      .poll(async () => (await call(0, "revoked", "cancelledStreams")).body.result as number)
      .toBe(1);
  });
});

describe("webhooks", () => {
  const send = (node: number, name: string, id: string, type = "t", payload: object = {}) =>
    sendGeneric(at(node).url, `roamers/${name}`, { id, type, ...payload }, {}, SECRET);

  it("a delivery runs once, whichever nodes it arrives at", async () => {
    for (let i = 0; i < 10; i++) expect((await send(i, "hook", `d${i}`)).status).toBe(200);
    const again = await send(1, "hook", "d4");
    expect(again.body).toEqual((await send(0, "hook", "d4")).body);
    expect((await call(0, "hook", "seen")).body.result).toEqual(
      Array.from({ length: 10 }, (_, i) => `d${i}`),
    );
  });

  it.each(["t", "answer", "reject", "fail"])(
    "the answer to an event of type %s is the same",
    async (type) => {
      const answers = await Promise.all(
        [0, 1].map(async (node) => {
          const { status, text } = await send(node, "answers", `${type}-${node}`, type);
          return { status, text: text.replace(/request id: [\w-]+/, "") };
        }),
      );
      expect(answers[1]).toEqual(answers[0]);
    },
  );

  it("a delivery of 2 MB arrives whole", async () => {
    const owner = await ownerOf("heavy");
    const answer = await send(owner + 1, "heavy", "big", "t", { text: "x".repeat(2_000_000) });
    expect(answer.status).toBe(200);
    expect((await call(0, "heavy", "seen")).body.result).toEqual(["big"]);
  });
});

describe("calls between agents", () => {
  /** Two instances on different nodes. */
  async function pair(prefix: string): Promise<[string, string]> {
    const first = `${prefix}-0`;
    const owner = await ownerOf(first);
    for (let i = 1; ; i++) if ((await ownerOf(`${prefix}-${i}`)) !== owner) return [first, `${prefix}-${i}`];
  }

  it("methods, requests and errors cross nodes", async () => {
    const [here, there] = await pair("calls");
    const pids = [(await call(0, here, "where")).body.result, (await call(0, there, "where")).body.result];
    expect(pids[0]).not.toBe(pids[1]);
    expect((await call(0, here, "ask", [there, "where"])).body.result).toEqual({ result: pids[1] });
    expect((await call(1, here, "ask", [there, "increment", 5])).body.result).toEqual({ result: 5 });
    expect((await call(0, here, "ask", [there, "fail"])).body.result).toEqual({
      type: "RangeError",
      message: "too far",
      isRangeError: true,
    });
    expect((await call(0, here, "request", [there, "size", "x".repeat(1_000_000)])).body.result).toEqual({
      status: 200,
      text: "1000000",
    });
    expect((await call(0, here, "request", [there, "cookies", null])).body.result).toEqual({
      status: 418,
      text: "eaten",
    });
  });

  it("a call that would wait for its own caller is refused across nodes", async () => {
    const [here, there] = await pair("cycle");
    expect((await call(0, here, "askBack", [there])).body.result).toMatchObject({
      type: "SignalboxError",
      message: `roamer/${here} is waiting for this call and cannot answer it`,
    });
  });

  it("queued and scheduled work calls instances of other nodes", async () => {
    const [here, there] = await pair("work");
    await call(0, here, "queueIncrementOf", [there]);
    await expect.poll(async () => (await call(0, there, "count")).body.result as number).toBe(2);
  });
});

describe("answers of models that a node keeps for its callers", () => {
  let mine: string;
  let stranger: string;
  beforeAll(async () => {
    const mint = async () =>
      (await at(0).api("POST", "/accounts/default/tokens", { name: "t", permissions: ["gateway.run"] })).body
        .result.token as string;
    [mine, stranger] = [await mint(), await mint()];
    const key = { provider_slug: "mistral", secret: "k" };
    await at(0).api("POST", "/accounts/default/ai-gateway/gateways/default/provider_configs", key);
  });

  async function responses(node: number, method: string, path: string, body?: object, token = mine) {
    const response = await fetch(`${at(node).url}/v1/responses${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }
  const create = (node: number, body: object, token = mine) =>
    responses(node, "POST", "", { model: "mistral/m", ...body }, token);
  const sentTurns = () =>
    (JSON.parse(provider.requests.at(-1)?.body ?? "{}") as { messages: object[] }).messages;

  it("are referred to, and read, at every node, by their caller only", async () => {
    const { body: first } = await create(0, { input: "Hello" });
    const id = String(first["id"]);
    for (const node of [0, 1]) {
      expect((await create(node, { input: "And?", previous_response_id: id })).status).toBe(200);
      expect(sentTurns()).toHaveLength(3);
      const [item] = first["output"] as { id: string }[];
      const items = [
        { type: "item_reference", id: item?.id },
        { role: "user", content: "And?" },
      ];
      expect((await create(node, { input: items })).status).toBe(200);
      expect(sentTurns()).toHaveLength(2);
      expect((await responses(node, "GET", `/${id}`)).body).toEqual(first);
      expect((await responses(node, "GET", `/${id}/input_items`)).body["data"]).toHaveLength(1);
      const asked = await create(node, { input: "And?", previous_response_id: id }, stranger);
      expect([asked.status, asked.body["error"]]).toEqual([
        400,
        expect.objectContaining({ code: "previous_response_not_found" }),
      ]);
    }
    expect((await responses(1, "DELETE", `/${id}`)).body).toMatchObject({ deleted: true });
    expect((await create(0, { input: "And?", previous_response_id: id })).status).toBe(400);
    expect((await create(1, { input: "And?", previous_response_id: id })).status).toBe(400);
  });

  it("that are written in the background are read and cancelled at every node", async () => {
    const { body: started } = await create(0, { input: "never answer", background: true });
    const path = `/${String(started["id"])}`;
    expect((await responses(1, "GET", path)).body).toMatchObject({ status: "in_progress" });
    expect((await responses(1, "POST", `${path}/cancel`, {}, stranger)).status).toBeGreaterThanOrEqual(400);
    expect((await responses(0, "GET", path)).body).toMatchObject({ status: "in_progress" });
    expect((await responses(1, "POST", `${path}/cancel`)).body).toMatchObject({ status: "cancelled" });
    expect((await responses(0, "GET", path)).body).toMatchObject({ status: "cancelled" });
    expect((await responses(1, "POST", `${path}/cancel`)).status).toBe(400);
  });
});
