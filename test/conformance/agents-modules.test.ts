/** Agent modules in a real server process: stack traces, and classes that extend the built-in agent. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { ROOT_TOKEN, startTestServer } from "../support/test-server.ts";
import { hexSignature, post, SECRET } from "../support/webhook-sender.ts";

const AGENTS = join(import.meta.dirname, "../fixtures/admission-agents.ts");
const headers = { authorization: `Bearer ${ROOT_TOKEN}` };

let folder: string;
let server: ServerProcess;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-modules-"));
  server = await startServerProcess(["--data-dir", folder, "--agents", AGENTS], {
    cwd: folder,
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN, WEBHOOK_SECRET: SECRET },
  });
});
afterAll(async () => {
  await server.end("SIGTERM");
  await rm(folder, { recursive: true, force: true });
});

it("an error of a TypeScript agent is logged with the line it was thrown at", async () => {
  const lines = (await readFile(AGENTS, "utf8")).split("\n");
  const line = lines.findIndex((text) => text.includes("thrown at a line that must be found")) + 1;
  const answer = await post(`${server.url}/agents/thrower/x/rpc/fail`, "[]", headers);
  expect(answer.status).toBe(500);
  await expect.poll(() => server.stderr()).toContain(`admission-agents.ts:${line}:`);
});

it("a method that blocks the process is named in the log while it blocks, once, with the line of the agent", async () => {
  const lines = (await readFile(AGENTS, "utf8")).split("\n");
  const line = lines.findIndex((text) => text.includes("the line that blocks")) + 1;
  const release = join(folder, "release");
  const call = post(`${server.url}/agents/blocker/me/rpc/block`, JSON.stringify([release]), headers);
  const logged = () =>
    server
      .stderr()
      .split("\n")
      .filter((text) => text.includes("blocker/me: block()"))
      .map((text) => JSON.parse(text) as Record<string, unknown>);
  await expect.poll(logged).toHaveLength(1);
  await writeFile(release, "");
  expect((await call).body.result).toBe("blocked");
  await expect.poll(logged).toHaveLength(2);
  const [blocked, ended] = logged();
  expect(blocked).toMatchObject({
    level: "error",
    account: "default",
    agent: "blocker",
    instance: "me",
    kind: "rpc",
    method: "block",
    at: expect.stringContaining(`admission-agents.ts:${line}:`),
    stack: expect.stringMatching(/^at (Blocker\.)?block /),
    msg: expect.stringContaining("has blocked the process for"),
  });
  expect(ended).toMatchObject({
    level: "warn",
    agent: "blocker",
    msg: expect.stringContaining("it goes on"),
  });
  // What a caller sends is no part of the log.
  expect(JSON.stringify(blocked)).not.toContain(release);
});

it("a subclass that answers GET itself still accepts deliveries and refuses unsigned ones", async () => {
  const url = `${server.url}/agents/hybrid/page`;
  expect(await (await fetch(url, { headers })).text()).toBe("page of page");
  const body = JSON.stringify({ id: "h1" });
  const signed = { ...headers, "x-signature": hexSignature(body) };
  expect((await post(url, body, signed)).body).toEqual({ status: "processed" });
  expect((await post(url, body, signed)).body).toEqual({ status: "duplicate" });
  const unsigned = await post(url, "{}", headers);
  expect([unsigned.status, unsigned.body.errors[0].code]).toEqual([401, 4001]);
  const put = await fetch(url, { method: "PUT", headers });
  expect([put.status, put.headers.get("allow")]).toEqual([405, "POST"]);
});

it("a subclass that only handles events refuses unauthenticated requests before an instance is created", async () => {
  const unsigned = await post(`${server.url}/agents/judge/nobody`, "{}", headers);
  expect([unsigned.status, unsigned.body.errors[0].code]).toEqual([401, 4001]);
  const { status } = await fetch(`${server.url}/accounts/default/agents/judge/instances/nobody`, { headers });
  expect(status).toBe(404);
});

it("agents see the environment without the secrets of the service and the credentials that it uses, or what agents.env names", async () => {
  const path = join(folder, "env.ts");
  await writeFile(
    path,
    `import { Agent } from "signalbox";
     export class EnvAgent extends Agent { static callable = ["names"]; names() { return Object.keys(this.env); } }`,
  );
  const environment = {
    MY_SECRET: "s3cret",
    // No provider has this name.
    MY_API_KEY: "k",
    SIGNALBOX_ENCRYPTION_KEY: "k".repeat(32),
    SIGNALBOX_MASTER_KEY: "ab".repeat(32),
    // An empty address means the embedded database.
    DATABASE_URL: "",
    OPENAI_API_KEY: "sk-1",
    OPENAI_API_KEY_EU: "sk-2",
    OLLAMA_LOCAL_API_KEY: "k",
    CUSTOM_CORP_API_KEY: "k",
    BUCKET_KEY: "k",
    BUCKET_SECRET: "k",
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=k",
    // Agents may verify deliveries themselves.
    GITHUB_WEBHOOK_SECRET: "w",
  };
  const namesOf = async (env?: string[]) => {
    const own = await startTestServer({
      file: {
        agents: { modules: [path], ...(env === undefined ? {} : { env }) },
        providers: { "ollama-local": { baseUrl: "http://127.0.0.1:1" } },
        gateway: {
          providerKeys: { CUSTOM_CORP_API_KEY: { accounts: ["default"], origin: "https://corp.example" } },
          logPush: {
            endpoint: "http://127.0.0.1:1",
            bucket: "stored-calls",
            accessKeyId: "BUCKET_KEY",
            secretAccessKey: "BUCKET_SECRET",
          },
        },
      },
      environment,
    });
    const { body } = await own.api("POST", "/agents/env-agent/x/rpc/names", []);
    const withheld = own.logs.find(({ msg }) => String(msg).includes("agents.env"));
    await own.stop();
    return [body.result, withheld?.["variables"]];
  };
  expect(await namesOf()).toEqual([
    ["MY_SECRET", "MY_API_KEY", "GITHUB_WEBHOOK_SECRET"],
    expect.arrayContaining(["OPENAI_API_KEY", "BUCKET_SECRET"]) as unknown,
  ]);
  expect(await namesOf(["OPENAI_*", "MY_SECRET", "SIGNALBOX_*"])).toEqual([
    ["MY_SECRET", "OPENAI_API_KEY", "OPENAI_API_KEY_EU"],
    undefined,
  ]);
  await expect(namesOf(["DATABASE_URL"])).rejects.toThrow(
    /agents\.env: DATABASE_URL is a secret of the service/,
  );
});

it("a configuration file imports signalbox and its neighbours without extension, wherever it is", async () => {
  const own = join(folder, "configured");
  await mkdir(join(own, "lib"), { recursive: true });
  await writeFile(join(own, "lib/settings.ts"), `export const access = "public" as const;`);
  await writeFile(
    join(own, "signalbox.config.ts"),
    `import { defineConfig } from "signalbox";
     import { access } from "./lib/settings";
     export default defineConfig({ agents: { access } });`,
  );
  const configured = await startServerProcess(["--data-dir", join(own, "data")], { cwd: own });
  // The setting has taken effect.
  expect((await post(`${configured.url}/agents/webhook-agent/x/rpc/getEvents`, "[]", {})).status).toBe(200);
  await configured.end("SIGTERM");
});

it("a queue item for a method that the class no longer has becomes a dead letter", async () => {
  const start = async (method: string, ahead: number) => {
    const path = join(folder, `${method}.ts`);
    await writeFile(
      path,
      `import { Agent } from "signalbox";
       export class Changing extends Agent {
         static callable = ["plan"];
         async plan() { await this.schedule(3600, "${method}"); }
         ${method}() {}
       }`,
    );
    const file = { agents: { modules: [path] } };
    return startTestServer({
      file,
      dataDir: join(folder, "changing"),
      clock: { now: () => Date.now() + ahead },
    });
  };
  const before = await start("former", 0);
  await before.api("POST", "/agents/changing/x/rpc/plan", []);
  await before.stop();

  const after = await start("latter", 3_600_000);
  const letters = async () =>
    (await after.api("GET", "/accounts/default/agents/changing/instances/x/dead-letters")).body.result;
  await expect
    .poll(letters)
    .toMatchObject([{ error: expect.stringContaining('has no method "former" any more') }]);
  await after.stop();
});
