/** An account tries to use provider keys of the operator that were not granted to it. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { callPath, CHAT, send } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const ENVIRONMENT = {
  OPENAI_API_KEY: "sk-operator",
  OPENAI_API_KEY_TEAM_A: "sk-team-a-only",
  OPENAI_API_KEY_SHARED: "sk-shared",
  CUSTOM_MINE_API_KEY: "sk-custom",
};

let provider: ProviderPeer;
let elsewhere: ProviderPeer;
let server: TestServer;
let editor: string;
beforeAll(async () => {
  provider = await startProvider((_, response) => sendJson(response, 200, {}));
  elsewhere = await startProvider((_, response) => sendJson(response, 200, {}));
  server = await start({
    OPENAI_API_KEY_TEAM_A: ["team-a"],
    OPENAI_API_KEY_SHARED: ["*"],
    CUSTOM_MINE_API_KEY: { accounts: ["team-b"], origin: provider.url },
  });
  for (const id of ["team-a", "team-b"]) {
    await server.api("POST", "/accounts", { id });
    await server.api("POST", `/accounts/${id}/ai-gateway/gateways`, { id: "g", allow_anonymous_keys: true });
  }
  editor = await server.token(["gateway.edit", "gateway.read"], { account: "team-b" });
});
afterAll(async () => {
  await server.stop();
  await provider.close();
  await elsewhere.close();
});

type Grants = Record<string, string[] | { accounts: string[]; origin: string }>;

const start = (providerKeys: Grants, dataDir?: string) =>
  startTestServer({
    environment: ENVIRONMENT,
    file: {
      providers: { openai: { baseUrl: provider.url } },
      gateway: { providerKeys, allowPrivateCustomProviders: true },
    },
    ...(dataDir === undefined ? {} : { dataDir }),
  });

const store = (account: string, secret_id: string, alias: string, options: object = {}, on = server) =>
  on.api("POST", `/accounts/${account}/ai-gateway/gateways/g/provider_configs`, {
    alias,
    default_config: false,
    provider_slug: "openai",
    secret_id,
    ...options,
  });

const call = async (account: string, alias?: string, slug = "openai", on = server) => {
  provider.requests.length = 0;
  const { status, body } = await send(on, "POST", callPath(`${slug}/chat/completions`, "g", account), {
    body: CHAT,
    headers: {
      "content-type": "application/json",
      ...(alias === undefined ? {} : { "gw-aig-byok-alias": alias }),
    },
  });
  return { status, body, sent: provider.requests[0]?.headers.authorization };
};

it("a variable is available to the accounts that the operator names, and to no other", async () => {
  expect((await store("team-a", "OPENAI_API_KEY_TEAM_A", "own")).status).toBe(200);
  expect(await call("team-a", "own")).toMatchObject({ status: 200, sent: "Bearer sk-team-a-only" });
  for (const account of ["team-a", "team-b"]) {
    expect((await store(account, "OPENAI_API_KEY_SHARED", "shared")).status).toBe(200);
    expect(await call(account, "shared")).toMatchObject({ status: 200, sent: "Bearer sk-shared" });
  }
  expect((await store("team-b", "OPENAI_API_KEY_TEAM_A", "stolen")).status).toBe(400);
  expect((await call("team-b", "stolen")).sent).toBeUndefined();
});

it("a variable without an entry is available to the account default", async () => {
  expect((await store("team-b", "OPENAI_API_KEY", "operator")).status).toBe(400);
  await server.api("POST", "/accounts/default/ai-gateway/gateways", { id: "g", allow_anonymous_keys: true });
  expect((await store("default", "OPENAI_API_KEY", "operator")).status).toBe(200);
  expect(await call("default", "operator")).toMatchObject({ status: 200, sent: "Bearer sk-operator" });
});

it("an existing variable, a missing variable and names like constructor get the same response", async () => {
  const answers = new Set<string>();
  for (const name of [
    "OPENAI_API_KEY",
    "OPENAI_API_KEY_TEAM_A",
    "OPENAI_API_KEY_NOT_THERE",
    "OPENAI_API_KEY_constructor",
  ]) {
    const { status, body } = await store("team-b", name, "probe");
    answers.add(`${status} ${(body.errors[0].message as string).replaceAll(name, "NAME")}`);
  }
  expect([...answers]).toHaveLength(1);
});

it("a stored entry stops working when the operator withdraws the variable, default key included", async () => {
  const before = await start({ OPENAI_API_KEY_TEAM_A: ["*"] });
  await before.api("POST", "/accounts", { id: "team-b" });
  await before.api("POST", "/accounts/team-b/ai-gateway/gateways", { id: "g", allow_anonymous_keys: true });
  await store("team-b", "OPENAI_API_KEY_TEAM_A", "mine", { default_config: true }, before);
  await store("team-b", "OPENAI_API_KEY_TEAM_A", "unset", {}, before);
  expect((await call("team-b", undefined, "openai", before)).sent).toBe("Bearer sk-team-a-only");
  await before.service.stop();
  const after = await start({ OPENAI_API_KEY_TEAM_A: ["team-a"] }, before.dataDir);
  for (const alias of [undefined, "mine"]) {
    const refused = await call("team-b", alias, "openai", after);
    expect(refused).toMatchObject({ status: 400, sent: undefined });
    expect(JSON.parse(refused.body)).toMatchObject({ internalCode: 2040 });
    expect(refused.body).not.toContain("OPENAI_API_KEY");
  }
  await after.stop();
  await before.stop();
});

it("the key of a custom provider is sent to the origin that the operator named, and nowhere else", async () => {
  const path = "/accounts/team-b/ai-gateway/custom-providers";
  const made = await server.api("POST", path, { name: "Mine", slug: "mine", base_url: provider.url }, editor);
  const config = { provider_slug: "custom-mine", default_config: true };
  expect((await store("team-b", "CUSTOM_MINE_API_KEY", "main", config)).status).toBe(200);
  expect((await call("team-b", undefined, "custom-mine")).sent).toBe("Bearer sk-custom");
  await server.api("PATCH", `${path}/${made.body.result.id}`, { base_url: elsewhere.url }, editor);
  expect((await call("team-b", undefined, "custom-mine")).status).toBe(400);
  expect((await call("team-b", "main", "custom-mine")).status).toBe(400);
  expect(elsewhere.requests).toEqual([]);
  // A key without an origin belongs to no custom provider.
  await server.api("POST", path, { name: "Other", slug: "other", base_url: elsewhere.url }, editor);
  expect((await store("team-b", "CUSTOM_OTHER_API_KEY", "x", { provider_slug: "custom-other" })).status).toBe(
    400,
  );
});
