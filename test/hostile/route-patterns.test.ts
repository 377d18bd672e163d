/** Patterns in conditions of routes: they run on the thread that serves everybody, for callers without a token, too. */
import { mkdtemp, rm } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { callRoute, end, model, start, to } from "../support/route-elements.ts";
import { startTestServer } from "../support/test-server.ts";

const ROUTES = "/accounts/default/ai-gateway/gateways/default/routes";

const withPatterns = (...patterns: readonly string[]) => [
  start("check"),
  {
    id: "check",
    type: "conditional",
    properties: { conditions: { $or: patterns.map(($regex) => ({ "body.x": { $regex } })) } },
    outputs: { true: to("large"), false: to("large") },
  },
  model("large", "echo"),
  end,
];
const SMALL = withPatterns("secret");
/** Each takes seconds on the text of a prompt. */
const LARGE = withPatterns("(?:a?){1000}[bc]", "(?:a?){999}[bc]");

async function open() {
  const dataDir = await mkdtemp(join(tmpdir(), "signalbox-patterns-"));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  return { dataDir, server: await startTestServer({ dataDir }) };
}

it("patterns that are too large are refused when they are saved and when they are tried", async () => {
  const { server } = await open();
  const created = await server.api("POST", ROUTES, { name: "small", elements: SMALL });
  expect(created.status).toBe(200);
  const { id } = created.body.result;
  for (const [path, body] of [
    [ROUTES, { name: "large", elements: LARGE }],
    [`${ROUTES}/${id}/versions`, { elements: LARGE }],
    [`${ROUTES}/${id}/try`, { elements: LARGE, body: { x: "a".repeat(16_384) } }],
  ] as const) {
    const { status, text } = await server.api("POST", path, body);
    expect([path, status]).toEqual([path, 400]);
    expect(text).toContain("repetitions");
  }
  await server.stop();
});

it("who may only read a gateway tries its routes as they were saved", async () => {
  const { server } = await open();
  const created = await server.api("POST", ROUTES, { name: "small", elements: SMALL });
  const { id, version } = created.body.result;
  const reader = await server.token(["gateway.read"]);
  const attempt = (body: object, token: string) =>
    server.api("POST", `${ROUTES}/${id}/try`, body, token).then(({ status }) => status);
  expect(await attempt({ elements: SMALL }, reader)).toBe(403);
  expect(await attempt({ body: { x: "secret" } }, reader)).toBe(200);
  expect(await attempt({ version_id: version.version_id }, reader)).toBe(200);
  expect(await attempt({ elements: SMALL }, await server.token(["gateway.read", "gateway.edit"]))).toBe(200);
  await server.stop();
});

it("a route of an earlier version whose patterns are too large stays listed, and its calls are refused with the reason", async () => {
  const { dataDir, server } = await open();
  const created = await server.api("POST", ROUTES, { name: "small", elements: SMALL });
  await server.stop();
  const database = new DatabaseSync(join(dataDir, "signalbox.db"));
  database.prepare("UPDATE gateway_route_version SET elements = ?").run(JSON.stringify(LARGE));
  database.close();
  const again = await startTestServer({ dataDir });
  const { body } = await again.api("GET", `${ROUTES}/${created.body.result.id}`);
  expect(body.result).toMatchObject({ elements: LARGE, version: { is_valid: false } });
  const answer = await callRoute(again, "small");
  expect(answer.status).toBe(400);
  expect(answer.body).toContain("repetitions");
  // It can be replaced.
  const version = await again.api("POST", `${ROUTES}/${created.body.result.id}/versions`, {
    elements: SMALL,
  });
  const { version_id } = version.body.result;
  await again.api("POST", `${ROUTES}/${created.body.result.id}/deployments`, { version_id });
  expect((await callRoute(again, "small")).status).toBe(200);
  await again.stop();
});
