/** Every write of settings at one node is true at the other when it is answered. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SETTINGS_KINDS } from "../../packages/signalbox/src/database/shared-settings.ts";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { ELSEWHERE, type Known, OTHER_AREAS, SETTINGS_CASES } from "./settings-cases.ts";

let cluster: TestCluster;
let a: ClusterNodeProcess;
let b: ClusterNodeProcess;
const known: Known = {};
beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 2 });
  [a, b] = cluster.nodes as [ClusterNodeProcess, ClusterNodeProcess];
});
afterAll(() => cluster.stop());

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
});
