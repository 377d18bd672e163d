/** Working with stored calls: all gateways in one view, search in texts, export, curl, replay. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand } from "../support/run-cli.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

const LOGS = "/accounts/default/ai-gateway/logs";
const GATEWAYS = "/accounts/default/ai-gateway/gateways";
const run = promisify(execFile);

interface Found {
  readonly id: string;
  readonly gateway_id: string;
  readonly prompt: string | null;
  readonly answer: string | null;
  readonly model: string;
  readonly tokens_in: number;
}

let server: TestServer;
let key: { id: string; token: string };

async function call(
  text: string,
  { gateway = "default", stream = false, path = "echo/chat/completions", model = "echo" } = {},
) {
  const response = await fetch(`${server.url}/v1/default/${gateway}/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "gw-aig-authorization": `Bearer ${key.token}` },
    body: JSON.stringify({ model, stream, messages: [{ role: "user", content: text }] }),
  });
  expect(response.status).toBe(200);
  await response.text();
  return response.headers.get("gw-aig-log-id") ?? "";
}

async function find(query: string, token?: string): Promise<Found[]> {
  const { status, body } = await server.api("GET", `${LOGS}?${query}`, undefined, token);
  expect(status, JSON.stringify(body)).toBe(200);
  return body.result;
}

let ids: string[];
beforeAll(async () => {
  server = await startTestServer();
  await server.api("POST", GATEWAYS, { id: "second" });
  const { body } = await server.api("POST", "/accounts/default/tokens", {
    name: "k",
    permissions: ["gateway.run", "gateway.read"],
  });
  key = body.result as { id: string; token: string };
  ids = [
    await call("The quick brown fox"),
    await call('it\'s a "stream" of words', { gateway: "second", stream: true }),
    await call("something else"),
  ];
});
afterAll(() => server.stop());

describe("all gateways in one view", () => {
  it("lists calls with previews of prompt and answer, page by page", async () => {
    const all = await find("limit=10");
    expect(all.map(({ id }) => id)).toEqual(ids.toReversed());
    expect(all[1]).toMatchObject({ gateway_id: "second", prompt: 'it\'s a "stream" of words' });
    expect(all.every(({ answer }) => answer !== null)).toBe(true);
    const first = await server.api("GET", `${LOGS}?limit=2`);
    const { cursor } = first.body.result_info as { cursor: string };
    expect((await find(`limit=2&cursor=${cursor}`)).map(({ id }) => id)).toEqual([ids[0]]);
    expect((await find("gateway_id=second")).map(({ id }) => id)).toEqual([ids[1]]);
    expect((await find("direction=asc")).map(({ id }) => id)).toEqual(ids);
  });

  it("searches in prompts and answers, also in streamed ones, together with filters", async () => {
    expect((await find("q=QUICK%20brown")).map(({ id }) => id)).toEqual([ids[0]]);
    expect((await find(`q=${encodeURIComponent('a "stream" of')}`)).map(({ id }) => id)).toEqual([ids[1]]);
    expect(await find("q=nowhere")).toEqual([]);
    expect(await find("q=quick&success=false")).toEqual([]);
    for (const bad of ["q=" + "x".repeat(300), "cursor=%27", "limit=0", "quer=x", "direction=up"]) {
      expect((await server.api("GET", `${LOGS}?${bad}`)).status, bad).toBe(400);
    }
  });

  it("names the calls before and after", async () => {
    const path = `${GATEWAYS}/default/logs/${ids[2]}/neighbours`;
    expect((await server.api("GET", path)).body.result).toEqual({ newer: null, older: ids[0] });
  });

  it("is closed to other accounts, and narrowed for a token of a gateway", async () => {
    await server.api("POST", "/accounts", { id: "other" });
    const foreign = await server.token(["gateway.read", "gateway.run"], { account: "other" });
    for (const path of [LOGS, `${LOGS}/export`, `${GATEWAYS}/default/logs/${ids[0]}/curl`]) {
      expect((await server.api("GET", path, undefined, foreign)).status, path).toBe(403);
    }
    expect((await server.api("POST", `${GATEWAYS}/default/logs/${ids[0]}/replay`, {}, foreign)).status).toBe(
      403,
    );
    const bound = await server.token(["gateway.read"], { gateway_id: "second" });
    expect((await find("", bound)).map(({ id }) => id)).toEqual([ids[1]]);
    expect((await server.api("GET", `${LOGS}?gateway_id=default`, undefined, bound)).status).toBe(403);
    const text = JSON.stringify(
      (await server.api("GET", `${LOGS}/export?bodies=true`, undefined, bound)).body,
    );
    expect(text).not.toContain("quick brown");
  });
});

describe("export", () => {
  it("streams NDJSON with bodies, and CSV with previews", async () => {
    const download = (query: string) =>
      fetch(`${server.url}${LOGS}/export?${query}`, { headers: { authorization: `Bearer ${ROOT_TOKEN}` } });
    const response = await download("bodies=true&q=quick");
    expect(response.headers.get("content-type")).toBe("application/x-ndjson");
    const line = JSON.parse(await response.text()) as Record<string, unknown>;
    expect(line).toMatchObject({
      id: ids[0],
      account_id: "default",
      gateway_id: "default",
      token_id: key.id,
    });
    expect(JSON.parse(String(line["request"]))).toMatchObject({
      messages: [{ content: "The quick brown fox" }],
    });
    const csv = (await (await download("format=csv")).text()).trimEnd().split("\r\n");
    expect(csv).toHaveLength(4);
    expect(csv[0]?.split(",").slice(0, 2)).toEqual(["gateway_id", "id"]);
    expect(csv[1]).toContain("The quick brown fox");
  });
});

describe("one call again", () => {
  it("is a curl command without a secret that a shell runs", async () => {
    const response = await fetch(`${server.url}${GATEWAYS}/second/logs/${ids[1]}/curl`, {
      headers: { authorization: `Bearer ${ROOT_TOKEN}` },
    });
    const command = await response.text();
    expect(command).not.toContain(key.token);
    expect(command).toContain("$SIGNALBOX_TOKEN");
    const { stdout } = await run("sh", ["-c", command.replace("curl ", "curl -s ")], {
      env: { ...process.env, SIGNALBOX_TOKEN: key.token },
    });
    expect(stdout).toContain("data: ");
  });

  it("is replayed against another model, as a call of the caller", async () => {
    const path = `${GATEWAYS}/second/logs/${ids[1]}/replay`;
    const { status, body } = await server.api("POST", path, { model: "echo/other-model" }, key.token);
    expect(status, JSON.stringify(body)).toBe(200);
    const replay = body.result as { status: number; log_id: string; answer: string };
    expect(replay.status).toBe(200);
    expect(replay.answer).toContain("words");
    const [row] = await find("limit=1");
    expect(row).toMatchObject({ id: replay.log_id, gateway_id: "second", model: "other-model" });
    const line = await server.api("GET", `${GATEWAYS}/second/logs/${replay.log_id}`);
    expect(line.body.result).toMatchObject({ authentication: true, user_agent: "signalbox-replay" });
    const same = await server.api("POST", path, {}, key.token);
    expect(same.body.result).toMatchObject({ status: 200 });
  });

  it("is refused by the limits of the caller, and without its permission", async () => {
    const { body } = await server.api("POST", "/accounts/default/tokens", {
      name: "poor",
      permissions: ["gateway.run", "gateway.read"],
      rate_limits: [{ type: "requests", limit: 1, interval: 30 * 86_400 }],
    });
    const { token } = body.result as { token: string };
    const path = `${GATEWAYS}/default/logs/${ids[0]}/replay`;
    const statuses = [];
    for (let i = 0; i < 2; i++) {
      const { body: answer } = await server.api("POST", path, { model: "echo/echo" }, token);
      statuses.push((answer.result as { status: number }).status);
    }
    expect(statuses).toEqual([200, 429]);
    // One that may only call would read the answers to prompts of others.
    for (const permission of ["gateway.read", "gateway.run"]) {
      const half = await server.token([permission]);
      expect((await server.api("POST", path, {}, half)).status, permission).toBe(403);
    }
    expect((await server.api("POST", path, { model: "no-provider" }, token)).status).toBe(400);
    expect((await server.api("POST", path.replace(String(ids[0]), "absent"), {}, token)).status).toBe(404);
  });
});

it("the command line searches, exports, prints curl and replays", async () => {
  const found = await runCommand(server, ["logs", "search", "quick"]);
  expect(found.out).toContain(ids[0]);
  const exported = await runCommand(server, ["logs", "export", "--text", "something else", "--bodies"]);
  expect(exported.out.trimEnd().split("\n").length).toBeGreaterThan(0);
  expect(exported.out).toContain("something else");
  expect((await runCommand(server, ["logs", "curl", String(ids[0])])).out).toContain("curl -X POST");
  const replay = await runCommand(server, ["logs", "replay", String(ids[0]), "--model", "echo/m2"]);
  expect([replay.code, replay.out]).toEqual([0, expect.stringContaining("status 200") as string]);
});
