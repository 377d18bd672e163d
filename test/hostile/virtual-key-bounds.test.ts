/** Tokens that try to give away, or to take, more than they have: models, providers, budgets, metadata, secrets of other tokens. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const TOKENS = "/accounts/default/tokens";
const PERMISSIONS = ["tokens.edit", "gateway.run", "gateway.edit"];
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({});
  await server.api("POST", "/accounts", { id: "elsewhere" });
});
afterAll(() => server.stop());

interface Made {
  readonly id: string;
  readonly token: string;
}

async function make(fields: object = {}, account = "default"): Promise<Made> {
  const { status, body } = await server.api("POST", `/accounts/${account}/tokens`, {
    name: "maker",
    permissions: PERMISSIONS,
    ...fields,
  });
  expect(status).toBe(200);
  return (body as { result: Made }).result;
}

const mint = (maker: Made, fields: object = {}) =>
  server.api("POST", TOKENS, { name: "child", permissions: ["gateway.run"], ...fields }, maker.token);
const patch = (maker: Made, id: string, fields: object) =>
  server.api("PATCH", `${TOKENS}/${id}`, fields, maker.token);
const rotate = (maker: Made, id: string) => server.api("POST", `${TOKENS}/${id}/rotate`, {}, maker.token);
const shown = async (id: string) => (await server.api("GET", `${TOKENS}/${id}`)).body.result as object;

const LIMITS: [name: string, own: object, within: object, beyond: object[]][] = [
  [
    "models",
    { models: ["openai/gpt-*", "!*pro*"] },
    { models: ["openai/gpt-5*", "!*pro*"] },
    [
      {},
      { models: [] },
      { models: ["openai/gpt-5*"] },
      { models: ["openai/*", "!*pro*"] },
      { models: ["!*pro*"] },
    ],
  ],
  [
    "providers",
    { providers: ["openai", "custom-*"] },
    { providers: ["custom-mine"] },
    [{}, { providers: ["anthropic"] }, { providers: ["*"] }, { providers: ["custom-*", "openai", "groq"] }],
  ],
  ["routes", { routes: ["chat", "models"] }, { routes: ["chat"] }, [{}, { routes: ["chat", "embeddings"] }]],
  ["owner", { owner: "alice" }, { owner: "alice" }, [{}, { owner: "bob" }, { owner: null }]],
  [
    "metadata",
    { metadata: { team: "a", n: 1 } },
    { metadata: { team: "a", n: 1, more: true } },
    [{}, { metadata: { team: "a" } }, { metadata: { team: "b", n: 1 } }, { metadata: { team: "a", n: "1" } }],
  ],
  ["tags", { tags: { team: "a" } }, { tags: { team: "a", x: "y" } }, [{}, { tags: { team: "b" } }]],
];

describe.each(LIMITS)("%s", (_, own, within, beyond) => {
  it("a token creates tokens within its own limits only, by both paths", async () => {
    const maker = await make(own);
    for (const fields of beyond) {
      expect([fields, (await mint(maker, fields)).status]).toEqual([fields, 403]);
      const path = "/accounts/default/ai-gateway/gateways/default/tokens";
      expect((await server.api("POST", path, fields, maker.token)).status).toBe(403);
    }
    expect((await mint(maker, within)).status).toBe(200);
    // Without gateway.run the limits of calls have no meaning.
    expect((await mint(maker, { permissions: ["tokens.edit"] })).status).toBe(200);
  });

  it("a token widens neither itself nor a token it created", async () => {
    const maker = await make(own);
    const child = (await mint(maker, within)).body.result as Made;
    const before = [await shown(maker.id), await shown(child.id)];
    for (const fields of beyond.filter((one) => Object.keys(one).length > 0)) {
      expect((await patch(maker, maker.id, fields)).status).toBe(403);
      expect((await patch(maker, child.id, fields)).status).toBe(403);
    }
    expect([await shown(maker.id), await shown(child.id)]).toMatchObject(before.map(withoutUse));
  });
});

function withoutUse(token: object): object {
  return Object.fromEntries(Object.entries(token).filter(([name]) => name !== "last_used_at"));
}

describe.each([
  ["a budget", { budgets: [{ limit: 1, window: "day" }] }],
  ["a rate limit", { rate_limits: [{ type: "requests", limit: 1, interval: 60 }] }],
])("a token with %s", (_, own) => {
  it("creates no token that can run calls, however limited", async () => {
    const maker = await make(own);
    for (const fields of [{}, own, { ...own, models: ["x"] }])
      expect((await mint(maker, fields)).status).toBe(403);
    expect((await mint(maker, { permissions: ["tokens.edit"] })).status).toBe(200);
  });

  it("removes its limits neither from itself nor through others, and takes no secret of another token", async () => {
    const maker = await make(own);
    const other = await make();
    for (const id of [maker.id, other.id]) {
      expect((await patch(maker, id, { budgets: [], rate_limits: [] })).status).toBe(
        id === other.id ? 200 : 403,
      );
      expect((await patch(maker, id, { budgets: [{ limit: 2, window: "day" }] })).status).toBe(403);
    }
    expect((await rotate(maker, other.id)).status).toBe(403);
    expect((await rotate(maker, maker.id)).status).toBe(200);
  });

  it("may rename and disable, but not enable", async () => {
    const maker = await make(own);
    expect((await patch(maker, maker.id, { name: "renamed" })).status).toBe(200);
    const other = await make();
    expect((await patch(maker, other.id, { disabled: true })).status).toBe(200);
    expect((await patch(maker, other.id, { disabled: false })).status).toBe(403);
  });
});

describe("tokens of others", () => {
  it("another account's tokens cannot be read, changed, rotated or measured", async () => {
    const stranger = await make({}, "elsewhere");
    const target = await make();
    for (const [method, path, body] of [
      ["GET", "", undefined],
      ["PATCH", "", { name: "x" }],
      ["POST", "/rotate", {}],
      ["GET", "/usage", undefined],
      ["DELETE", "", undefined],
    ] as const) {
      for (const account of ["default", "elsewhere"]) {
        const answer = await server.api(
          method,
          `/accounts/${account}/tokens/${target.id}${path}`,
          body,
          stranger.token,
        );
        expect([method, path, answer.status]).toEqual([method, path, account === "default" ? 403 : 404]);
      }
    }
    expect(await shown(target.id)).toMatchObject({ name: "maker", disabled: false });
  });

  it("a token with fewer permissions cannot rotate or change one with more", async () => {
    const weak = await make({ permissions: ["tokens.edit"] });
    const strong = await make();
    expect((await rotate(weak, strong.id)).status).toBe(403);
    expect((await patch(weak, strong.id, { name: "x" })).status).toBe(403);
    expect((await patch(weak, strong.id, { disabled: true })).status).toBe(403);
  });

  it("a token that expires cannot take the secret of one that does not", async () => {
    const brief = await make({ expires_at: new Date(Date.now() + 60_000).toISOString() });
    const lasting = await make();
    expect((await rotate(brief, lasting.id)).status).toBe(403);
    expect((await patch(brief, brief.id, { expires_at: null })).status).toBe(403);
    expect((await patch(brief, lasting.id, { owner: "me" })).status).toBe(403);
  });
});
