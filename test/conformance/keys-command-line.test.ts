/** Virtual keys and provider keys on the command line. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runCommand } from "../support/run-cli.ts";
import { post, setGateway } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-cli-"));
  // Under a budget a call needs a price.
  server = await startTestServer({ file: { gateway: { prices: { echo: { "*": { in: 1, out: 1 } } } } } });
  await setGateway(server, { authentication: true });
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

const words = (text: string) => text.split(" ");

async function run(...args: string[]): Promise<Record<string, unknown>> {
  const { code, out, err } = await runCommand(server, [...args, "--json"]);
  expect({ args, code, err }).toEqual({ args, code: 0, err: "" });
  return JSON.parse(out) as Record<string, unknown>;
}

it("a virtual key is created, changed, rotated, disabled, measured and revoked", async () => {
  const made = await run(
    ...words("tokens create ci --permission gateway.run --owner alice --budget 10/month@Europe/Berlin"),
    ...words("--budget 1/3600s~ --budget 100/total --soft-budget 8/month --rate requests=60/60s"),
    ...words("--rate parallel=4 --model echo/* --model !*pro --provider echo --route chat"),
    ...words("--metadata team=search --metadata level=2 --tag cost=r"),
  );
  expect(made).toMatchObject({
    owner: "alice",
    budgets: [
      { limit: 10, window: "month", reset: "fixed", timezone: "Europe/Berlin" },
      { limit: 1, window: 3600, reset: "sliding" },
      { limit: 100, window: null },
    ],
    soft_budget: { limit: 8, window: "month" },
    rate_limits: [
      { type: "requests", limit: 60, interval: 60 },
      { type: "parallel", limit: 4, interval: null },
    ],
    models: ["echo/*", "!*pro"],
    providers: ["echo"],
    routes: ["chat"],
    metadata: { team: "search", level: 2 },
    tags: { cost: "r" },
  });
  const id = String(made["id"]);
  const call = (token: unknown) =>
    post(server, "echo/chat/completions", { headers: { "x-api-key": String(token) } });
  expect((await call(made["token"])).status).toBe(200);
  const usage = (await run("token", "usage", id, "--by", "model")) as unknown as object[];
  expect(usage).toMatchObject([{ calls: 1 }]);
  const text = await runCommand(server, ["token", "usage", id, "--by", "model", "--by", "day"]);
  expect(text.out).toMatch(/^MODEL +DAY +CALLS/m);
  expect(await run("token", "patch", id, "--model", "echo/g*", "--clear", "budgets")).toMatchObject({
    models: ["echo/g*"],
    budgets: [],
    owner: "alice",
  });
  const rotated = await run("token", "rotate", id, "--grace", "60");
  expect((await call(made["token"])).status).toBe(200);
  await run("token", "disable", id);
  expect((await call(rotated["token"])).status).toBe(401);
  await run("token", "enable", id);
  expect((await call(rotated["token"])).status).toBe(200);
  expect(await run("token", "list", "--owner", "alice")).toHaveLength(1);
  expect((await runCommand(server, ["token", "show", id])).out).toContain("owner: alice");
  await run("token", "delete", id);
  expect(await run("token", "list", "--owner", "alice")).toEqual([]);
});

it.each([
  [
    ["token", "create", "x", "--permission", "gateway.run", "--budget", "ten"],
    "--budget: expected an amount",
  ],
  [
    ["token", "create", "x", "--permission", "gateway.run", "--rate", "60"],
    "--rate: expected requests=60/60s",
  ],
  [["token", "patch", "x", "--clear", "name"], "--clear: expected one of budgets"],
  [["token", "patch", "x"], "give at least one change"],
  [["token", "rotate", "x", "--grace", "-5"], "grace"],
  [["provider-keys", "create", "openai", "--secret-file", "/no/such/file"], "--secret-file: cannot read"],
  [["provider-keys", "patch", "x", "--rate", "fast"], "--rate: expected LIMIT/SECONDS"],
])("%j is an error of the command line", async (args, message) => {
  const { code, err } = await runCommand(server, args);
  expect(code).toBe(2);
  expect(err).toContain(message);
});

it("provider keys are stored from a file, listed, changed and deleted, and the master key is rotated", async () => {
  const file = join(folder, "key.txt");
  await writeFile(file, "sk-from-a-file-1234\n");
  const made = await run(
    ...words("provider-keys create openai --gateway default --weight 3 --model gpt-* --rate 60/30"),
    "--secret-file",
    file,
  );
  expect(made).toMatchObject({
    secret_preview: "…1234",
    weight: 3,
    models: ["gpt-*"],
    rate_limit: 60,
    alias: "",
  });
  const id = String(made["id"]);
  const shared = await run(
    "provider-keys",
    "create",
    "openai",
    "--secret-id",
    "env:OPENAI_API_KEY",
    "--alias",
    "a",
  );
  expect(shared).toMatchObject({ gateway_id: null, secret_preview: "$OPENAI_API_KEY" });
  expect(
    await run("provider-keys", "patch", id, "--gateway", "default", "--disabled", "on", "--rate", "off"),
  ).toMatchObject({ status: "disabled", rate_limit: null });
  const list = await runCommand(server, ["provider-keys", "list", "--gateway", "default"]);
  expect(list.out).toMatch(/openai +\(pool\) +…1234 +3 +disabled/);
  expect(await run("keys", "rotate-master")).toEqual({ rotated: 1, unreadable: 0 });
  await run("provider-keys", "delete", id, "--gateway", "default");
  expect(await run("provider-keys", "list", "--gateway", "default")).toEqual([]);
});
