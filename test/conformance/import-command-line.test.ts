/** The command line takes over a configuration of LiteLLM and public lists of prices. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { type ProviderPeer, sendJson } from "../peers/provider.ts";
import { send, startWithProvider } from "../support/gateway.ts";
import { runCommand } from "../support/run-cli.ts";
import type { TestServer } from "../support/test-server.ts";

let provider: ProviderPeer;
let server: TestServer;
let stop: () => Promise<void>;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-import-"));
  ({ provider, server, stop } = await startWithProvider((at) => ({
    file: { providers: { openai: at, groq: at } },
    environment: { OPENAI_API_KEY: "sk-of-the-environment" },
  })));
  await writeFile(
    join(folder, "config.yaml"),
    `
model_list:
  - model_name: smart
    litellm_params: { model: openai/large, api_key: os.environ/OPENAI_API_KEY }
  - model_name: backup
    litellm_params: { model: groq/small, api_key: gsk-a-key-of-the-file-1234 }
    model_info: { input_cost_per_token: 0.000001, output_cost_per_token: 0.000001 }
litellm_settings:
  fallbacks: [{ smart: [backup] }]
  max_budget: 50
  budget_duration: 1mo
general_settings: { master_key: sk-1234 }
`,
  );
});
afterAll(async () => {
  await stop();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(() => {
  provider.requests.length = 0;
});

const GATEWAY = "/accounts/default/ai-gateway/gateways/default";
const readAll = async () => {
  const paths = [`${GATEWAY}/provider_configs`, `${GATEWAY}/routes`, "/accounts/default/ai-gateway/limits"];
  return Promise.all(paths.map(async (path) => (await server.api("GET", path)).body.result));
};

it("shows first what an import would create, and changes nothing", async () => {
  const before = await readAll();
  const { code, out } = await runCommand(server, [
    "import",
    "litellm",
    join(folder, "config.yaml"),
    "--dry-run",
  ]);
  expect(code).toBe(0);
  for (const part of ["would be created", "route smart", "limit litellm-budget", '"backup": "groq/small"']) {
    expect(out).toContain(part);
  }
  expect(out).not.toMatch(/gsk-a-key|sk-1234/);
  expect(await readAll()).toEqual(before);
});

it("creates keys, routes, prices and limits that work, and repeats without doubles", async () => {
  const config = join(folder, "signalbox.config.json");
  const args = ["import", "litellm", join(folder, "config.yaml")];
  const first = await runCommand(server, [...args, "--write-config", config]);
  expect([first.code, first.err]).toEqual([0, ""]);
  expect(JSON.parse(await readFile(config, "utf8"))).toEqual({
    gateway: { models: { smart: "dynamic/smart", backup: "groq/small" } },
  });
  expect((await runCommand(server, [...args, "--write-config", config])).code).toBe(2);
  const after = await readAll();
  const again = await runCommand(server, args);
  expect([again.code, again.out]).toEqual([0, expect.stringContaining("already there")]);
  expect(await readAll()).toEqual(after);

  provider.answer = ({ body }, response) =>
    body.includes("large")
      ? sendJson(response, 500, { error: { message: "down" } })
      : sendJson(response, 200, { id: "1", object: "chat.completion", model: "small", choices: [] });
  const token = await server.token(["gateway.run"]);
  const answer = await send(server, "POST", "/v1/chat/completions", {
    body: JSON.stringify({ model: "dynamic/smart", max_tokens: 5, messages: [] }),
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
  });
  // The price of `large` is not known, so under the budget the call goes to the fallback at once.
  expect([answer.status, answer.headers["gw-aig-provider"]]).toEqual([200, "groq"]);
  expect(provider.requests.at(-1)?.headers.authorization).toBe("Bearer gsk-a-key-of-the-file-1234");
});

it("imports prices from a URL: merged or as a whole, or nothing at all", async () => {
  const path = "/accounts/default/ai-gateway/prices";
  const prices = async () => ((await server.api("GET", path)).body.result as { prices: unknown }).prices;
  await server.api("PUT", path, { prices: { groq: { own: { in: 7, out: 7 } } } });
  const list = {
    "gpt-x": { litellm_provider: "openai", input_cost_per_token: 1e-6, output_cost_per_token: 2e-6 },
  };
  provider.answer = (_, response) => sendJson(response, 200, list);
  const run = (...args: string[]) =>
    runCommand(server, ["prices", "import", `${provider.url}/list.json`, ...args]);
  const openai = { "gpt-x": { in: 1, out: 2 } };
  expect((await run("--dry-run")).code).toBe(0);
  expect(await prices()).toEqual({ groq: { own: { in: 7, out: 7 } } });
  expect((await run("--merge")).code).toBe(0);
  expect(await prices()).toEqual({ groq: { own: { in: 7, out: 7 } }, openai });
  expect((await run("--provider", "openai")).code).toBe(0);
  expect(await prices()).toEqual({ openai });
  expect((await run("--provider", "groq")).code).toBe(2);
  provider.answer = (_, response) => sendJson(response, 200, { openai: { x: { in: -1, out: 0 } } });
  expect((await run()).code).toBe(2);
  expect(await prices()).toEqual({ openai });
});
