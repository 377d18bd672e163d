/** Every write of settings at one node is true at the other when it is answered. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SETTINGS_KINDS } from "../../packages/signalbox/src/database/shared-settings.ts";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { callEcho } from "../support/send-request.ts";
import { ELSEWHERE, type Known, OTHER_AREAS, SETTINGS_CASES } from "./settings-cases.ts";

let cluster: TestCluster;
/** A model that judges. */
let judge: ProviderPeer;
let a: ClusterNodeProcess;
let b: ClusterNodeProcess;
const known: Known = {};
beforeAll(async () => {
  judge = await startProvider(({ body }, response) => {
    const content = body.includes("volcano") ? "unsafe\nS9" : "safe";
    sendJson(response, 200, {
      choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content } }],
      usage: { prompt_tokens: 100, completion_tokens: 2, total_tokens: 102 },
    });
  });
  cluster = await startTestCluster({
    nodes: 2,
    file: {
      providers: {
        // Nothing listens there.
        openai: { baseUrl: "http://127.0.0.1:9/v1" },
        ollama: { baseUrl: `${judge.url}/v1` },
      },
      gateway: { prices: { ollama: { "*": { in: 1000, out: 1000 } } } },
    },
  });
  [a, b] = cluster.nodes as [ClusterNodeProcess, ClusterNodeProcess];
});
afterAll(async () => {
  await cluster.stop();
  await judge.close();
});

describe("the list of cases", () => {
  it("has every kind, and every operation that writes", async () => {
    const { paths } = (await a.api("GET", "/openapi.json")).body as unknown as {
      paths: Record<string, Record<string, unknown>>;
    };
    const operations = Object.entries(paths)
      .filter(([path]) => !OTHER_AREAS.test(path))
      .flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`))
      .filter((operation) => !operation.startsWith("GET "));
    const covered = new Set([
      ...SETTINGS_CASES.flatMap(({ operation }) => operation ?? []),
      ...Object.keys(ELSEWHERE),
    ]);
    expect(operations.filter((operation) => !covered.has(operation))).toEqual([]);
    const kinds = new Set<string>([...SETTINGS_CASES.map(({ kind }) => kind), "circuits"]);
    expect(SETTINGS_KINDS.filter((kind) => !kinds.has(kind))).toEqual([]);
  });
});

describe("a write at one node", () => {
  it.each(SETTINGS_CASES.map((one) => [`${one.operation ?? one.kind} ${one.title ?? ""}`, one] as const))(
    "%s is true at the other",
    async (_title, { write, look }) => {
      const before = await look(b, known);
      await write(a, known);
      const after = await look(b, known);
      expect(after).not.toEqual(before);
      expect(await look(a, known)).toEqual(after);
      // The next write is made at the other node.
      [a, b] = [b, a];
    },
  );
});

describe("other writes", () => {
  it("a login link that one node made works at another, once", async () => {
    const { path } = (await a.api("POST", "/login-links")).body.result as { path: string };
    const open = (node: ClusterNodeProcess) => fetch(node.url + path, { redirect: "manual" });
    const opened = await Promise.all([open(b), open(a), open(b), open(a)]);
    const cookies = opened.flatMap((response) => response.headers.get("set-cookie") ?? []);
    expect(cookies).toHaveLength(1);
    const cookie = cookies[0]?.split(";")[0] ?? "";
    for (const node of [a, b])
      expect((await fetch(`${node.url}/accounts`, { headers: { cookie } })).status).toBe(200);
  });

  it("a stored key that one node encrypted anew is used by another", async () => {
    const keys = "/accounts/default/ai-gateway/gateways/default/provider_configs";
    await a.api("POST", keys, { provider_slug: "openai", secret: "sk-of-the-default-gateway" });
    const { body } = await a.api("POST", "/provider_keys/rotate_master");
    expect(body.result).toMatchObject({ rotated: 1, unreadable: 0 });
    expect((await b.api("GET", keys)).body.result).toEqual((await a.api("GET", keys)).body.result);
  });

  it("circuits that are closed by hand are closed at both nodes", async () => {
    const circuits = "/accounts/default/ai-gateway/gateways/default/circuits";
    for (let i = 0; i < 5; i++) {
      const response = await fetch(`${b.url}/v1/default/default/openai/chat/completions`, {
        method: "POST",
        headers: { authorization: "Bearer sk-of-the-caller", "content-type": "application/json" },
        body: '{"model":"gpt-4o","messages":[]}',
      });
      await response.arrayBuffer();
    }
    expect((await b.api("GET", circuits)).body.result).not.toEqual([]);
    expect((await a.api("DELETE", circuits)).status).toBe(200);
    expect((await b.api("GET", circuits)).body.result).toEqual([]);
  });
});

describe("guardrails", () => {
  const ACCOUNT = "/accounts/default/ai-gateway";
  const GATEWAY = `${ACCOUNT}/gateways/default`;
  const rule = (word: string, more: object = {}) => ({
    id: word,
    type: "words",
    words: [word],
    action: "block",
    ...more,
  });

  it("that one node stores refuse the next call at the other, until that one removes them", async () => {
    for (const path of [`${ACCOUNT}/guardrails`, `${GATEWAY}/guardrails`]) {
      await a.api("PUT", path, { rules: [rule("zebra")] });
      expect([(await callEcho(b, "a zebra")).status, (await callEcho(b, "a gnu")).status]).toEqual([
        424, 200,
      ]);
      await b.api("PUT", path, { rules: [rule("gnu")] });
      expect([(await callEcho(a, "a zebra")).status, (await callEcho(a, "a gnu")).status]).toEqual([
        200, 424,
      ]);
      await a.api("PUT", path, { rules: [] });
      expect((await callEcho(b, "a gnu")).status).toBe(200);
    }
  });

  it("of a token that one node changed hold at the other", async () => {
    const { token, id } = (
      await a.api("POST", "/accounts/default/tokens", { name: "guarded", permissions: ["gateway.run"] })
    ).body.result as { token: string; id: string };
    const ask = async (node: ClusterNodeProcess) => {
      const { status } = await fetch(`${node.url}/v1/default/default/echo/chat/completions`, {
        method: "POST",
        headers: { "gw-aig-authorization": `Bearer ${token}`, "content-type": "application/json" },
        body: '{"model":"echo","messages":[{"role":"user","content":"a zebra"}]}',
      });
      return status;
    };
    expect(await ask(b)).toBe(200);
    await a.api("PATCH", `/accounts/default/tokens/${id}`, { guardrails: [rule("zebra")] });
    expect(await ask(b)).toBe(424);
    await b.api("PATCH", `/accounts/default/tokens/${id}`, { guardrails: [] });
    expect(await ask(a)).toBe(200);
  });

  it("that one node stores ask their judge at the other, and both rows are in the log of all nodes", async () => {
    const rules = [{ id: "safety", on: ["prompt"], type: "model", model: "ollama/guard", action: "block" }];
    expect((await a.api("PUT", `${GATEWAY}/guardrails`, { rules })).status).toBe(200);
    const refused = await callEcho(b, "a volcano");
    const passed = await callEcho(b, "a calm sea");
    expect([refused.status, refused.text, passed.status]).toEqual([
      424,
      expect.stringContaining("2016"),
      200,
    ]);
    const answer = judge.answer;
    judge.answer = (_request, response) => void response.destroy();
    const unjudged = await callEcho(a, "a calm sea");
    judge.answer = answer;
    expect([unjudged.status, unjudged.text]).toEqual([503, expect.stringContaining("7013")]);
    await b.api("PUT", `${GATEWAY}/guardrails`, { rules: [] });

    const rows = (await a.api("GET", `${GATEWAY}/logs?per_page=50`)).body.result as Record<string, unknown>[];
    const rowOf = ({ headers }: typeof refused) =>
      rows.find(({ id }) => id === headers.get("gw-aig-log-id")) ?? {};
    expect(rowOf(refused)).toMatchObject({ guardrail_action: "block", cost: 0 });
    expect(JSON.parse(String(rowOf(refused)["guardrails"]))).toMatchObject([
      { rule: "safety", owner: "gateway", place: "prompt", action: "block", kind: "S9" },
    ]);
    expect(rowOf(passed)).toMatchObject({ status_code: 200 });
    expect(rowOf(passed)["guardrail_action"] ?? null).toBe(null);
    expect(JSON.parse(String(rowOf(unjudged)["guardrails"]))).toMatchObject([
      { rule: "safety", kind: "unjudged", action: "block" },
    ]);
    const judged = rows.filter(({ model, status_code: status }) => model === "guard" && status === 200);
    expect(judged).toHaveLength(2);
    for (const row of judged) {
      expect(row).toMatchObject({ provider: "ollama", metadata: JSON.stringify({ guardrail: "safety" }) });
      expect(Number(row["cost"])).toBeGreaterThan(0);
    }
  });

  it("that keep texts out of the log do so on PostgreSQL: lists, bodies, search and exports have masks", async () => {
    const mail = { id: "mail", type: "pii", kinds: ["email"], action: "mask", logs: "masked" };
    const okapi = rule("okapi", { action: "flag", logs: "masked" });
    const zebra = rule("zebra", { logs: "masked" });
    await a.api("PUT", `${GATEWAY}/guardrails`, { rules: [mail, okapi, zebra] });
    const passed = await callEcho(b, "Tell ada@example.org of the okapi in the savanna");
    expect([passed.status, passed.text]).toEqual([
      200,
      expect.stringContaining("ada@example.org of the okapi"),
    ]);
    const refused = await callEcho(b, "a zebra of ada@example.org in the savanna");
    expect(refused.status).toBe(424);
    await a.api("PUT", `${GATEWAY}/guardrails`, { rules: [] });

    const shown = async (path: string) => (await a.api("GET", path)).text;
    const rows = (await a.api("GET", `${GATEWAY}/logs?per_page=50`)).body.result as Record<string, unknown>[];
    const rowOf = ({ headers }: typeof passed) =>
      rows.find(({ id }) => id === headers.get("gw-aig-log-id")) ?? {};
    expect(rowOf(passed)).toMatchObject({ guardrail_action: "mask" });
    expect(rowOf(refused)).toMatchObject({ guardrail_action: "block" });
    const bodies = await Promise.all([
      shown(`${GATEWAY}/logs/${String(rowOf(passed)["id"])}/request`),
      shown(`${GATEWAY}/logs/${String(rowOf(passed)["id"])}/response`),
      shown(`${GATEWAY}/logs/${String(rowOf(refused)["id"])}/request`),
      shown(`${ACCOUNT}/logs/export?q=savanna&bodies=true`),
    ]);
    for (const text of bodies) {
      expect(text).toContain("EMAIL_1");
      expect(text).not.toMatch(/ada@|okapi in|zebra of/);
    }
    for (const [text, count] of [
      ["savanna", 2],
      ["ada@example.org", 0],
      ["okapi in the", 0],
      ["zebra of", 0],
    ] as const) {
      const { body } = await a.api("GET", `${ACCOUNT}/logs?q=${encodeURIComponent(text)}`);
      expect([text, (body.result as unknown[]).length]).toEqual([text, count]);
    }
  });
});
