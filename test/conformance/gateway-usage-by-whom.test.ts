/** Usage by token, owner, user and metadata: through the API, as CSV, by the command line. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { runCommand } from "../support/run-cli.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
let ada: { id: string; token: string };
let bob: { id: string; token: string };
const USAGE = "/accounts/default/ai-gateway/usage";

async function createKey(name: string, owner: string): Promise<{ id: string; token: string }> {
  const { body } = await server.api("POST", "/accounts/default/tokens", {
    name,
    permissions: ["gateway.run"],
    owner,
    tags: { team: "search" },
  });
  return body.result as { id: string; token: string };
}

async function call(token: string, metadata: object, stream = false): Promise<number> {
  const response = await fetch(`${server.url}/v1/default/default/echo/chat/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "gw-aig-authorization": `Bearer ${token}`,
      "gw-aig-metadata": JSON.stringify(metadata),
    },
    body: JSON.stringify({ model: "echo", stream, messages: [{ role: "user", content: "hello" }] }),
  });
  await response.text();
  return response.status;
}

type Row = Record<string, unknown> & { calls: number };
const rows = async (query: string, token?: string): Promise<Row[]> => {
  const { status, body } = await server.api("GET", `${USAGE}?${query}`, undefined, token);
  expect(status, JSON.stringify(body)).toBe(200);
  return body.result;
};

beforeAll(async () => {
  server = await startTestServer();
  ada = await createKey("ada's key", "ada");
  bob = await createKey("bob's key", "bob");
  await call(ada.token, { user: "u1", team: "x" });
  await call(ada.token, { user: "u2", team: "x" }, true);
  await call(bob.token, { user: "u1", team: "y" });
});
afterAll(() => server.stop());

it("groups by token, owner, user, metadata, tag of tokens, and with time and model", async () => {
  const by = async (group: string, member: string) =>
    Object.entries(
      Object.fromEntries((await rows(`group_by=${group}`)).map((row) => [row[member], row.calls])),
    );
  expect(await by("token", "token_name")).toEqual([
    ["ada's key", 2],
    ["bob's key", 1],
  ]);
  expect(await by("owner", "owner")).toEqual([
    ["ada", 2],
    ["bob", 1],
  ]);
  expect(await by("user", "user")).toEqual([
    ["u1", 2],
    ["u2", 1],
  ]);
  expect((await rows("group_by=metadata:team")).map((row) => [row["metadata"], row.calls])).toContainEqual([
    { team: "x" },
    2,
  ]);
  expect((await rows("group_by=token_tag:team"))[0]).toMatchObject({
    token_tags: { team: "search" },
    calls: 3,
  });
  const [first] = await rows("group_by=owner,day,model&only=owner=ada");
  expect(first).toMatchObject({ owner: "ada", model: "echo", calls: 2, streams: 1 });
  expect(first?.["time_to_first_token_p50"]).toEqual(expect.any(Number));
  expect(first?.["duration_p95"]).toEqual(expect.any(Number));
});

it("shows the rest as other, with its number of values", async () => {
  const { body } = await server.api("GET", `${USAGE}?group_by=user&limit=1`);
  const found = body.result as unknown as Row[];
  expect(found.map((row) => [row["other"] ?? row["user"], row.calls])).toEqual([
    ["u1", 2],
    [true, 1],
  ]);
  expect(body.result_info).toMatchObject({ other_values: 1, counted_from: null });
});

it("is CSV on request, also by the command line", async () => {
  const response = await fetch(`${server.url}${USAGE}?group_by=metadata:team&format=csv`, {
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  });
  expect(response.headers.get("content-type")).toBe("text/csv; charset=utf-8");
  const [head = ""] = (await response.text()).split("\r\n");
  expect(head).toContain("metadata:team");
  expect(head).toContain("time_to_first_token_p95");
  const shown = await runCommand(server, ["usage", "--by", "owner"]);
  expect(shown.out).toMatch(/ada +2 +0 /);
  const csv = await runCommand(server, ["usage", "--by", "user,day", "--csv"]);
  expect(csv.out.split("\r\n")[0]).toContain("user");
});

it("refuses what it does not know", async () => {
  for (const bad of [
    "group_by=tokn",
    "group_by=metadata:",
    "group_by=metadata:a%22b",
    "only=x",
    "limit=0",
    "limit=1001",
    "group_by=token,tag:env",
    "group_by=token,owner,user,metadata:a",
  ]) {
    expect((await server.api("GET", `${USAGE}?${bad}`)).status, bad).toBe(400);
  }
});

it("a token of another account sees nothing; one of another gateway only its gateway; names need tokens.edit", async () => {
  await server.api("POST", "/accounts", { id: "other" });
  const foreign = await server.token(["gateway.read"], { account: "other" });
  expect((await server.api("GET", `${USAGE}?group_by=token`, undefined, foreign)).status).toBe(403);
  await server.api("POST", "/accounts/default/ai-gateway/gateways", { id: "g2" });
  const bound = await server.token(["gateway.read"], { gateway_id: "g2" });
  expect(await rows("group_by=token", bound)).toEqual([]);
  const reader = await server.token(["gateway.read"]);
  const [row] = await rows("group_by=token", reader);
  expect(row?.["token_id"]).toBe(ada.id);
  expect(row).not.toHaveProperty("token_name");
});

it("metadata has up to 32 keys; more are refused and not dropped", async () => {
  const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]));
  expect(await call(bob.token, keys(32))).toBe(200);
  expect(
    (await rows("group_by=metadata:k31")).some(
      (row) => (row["metadata"] as { k31: string | null }).k31 === "31",
    ),
  ).toBe(true);
  expect(await call(bob.token, keys(33))).toBe(400);
});
