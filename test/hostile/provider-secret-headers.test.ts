/** An editor of an account's custom provider tries to read secret headers that others stored with it. */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { post } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const PATH = "/accounts/default/ai-gateway/custom-providers";
const SECRET = "Bearer sk-live-in-plain-text";
const FILE = { gateway: { allowPrivateCustomProviders: true } };

let provider: ProviderPeer;
let attacker: ProviderPeer;
let server: TestServer;
let editor: string;
let id: string;
let count = 0;
let slug: string;
beforeAll(async () => {
  provider = await startProvider((_, response) => sendJson(response, 200, {}));
  attacker = await startProvider((_, response) => sendJson(response, 200, {}));
  server = await startTestServer({ file: FILE });
  editor = await server.token(["gateway.edit", "gateway.read"]);
});
afterAll(async () => {
  await server.stop();
  await provider.close();
  await attacker.close();
});
beforeEach(async () => {
  provider.requests.length = 0;
  attacker.requests.length = 0;
  slug = `p${++count}`;
  id = await create(server, slug);
});

async function create(on: TestServer, name: string): Promise<string> {
  const { body } = await on.api("POST", PATH, {
    name,
    slug: name,
    base_url: `${provider.url}/api`,
    headers: JSON.stringify({ "X-Api-Key": SECRET, "x-team": "red" }),
  });
  return (body as { result: { id: string } }).result.id;
}

const change = (body: object) => server.api("PATCH", `${PATH}/${id}`, body, editor);
const call = (name = slug, on = server) => post(on, `custom-${name}/x`, { body: "{}" });
const received = (peer: ProviderPeer) => JSON.stringify(peer.requests.map(({ headers }) => headers));

it("a changed base URL removes the stored values, and the response says so", async () => {
  const { status, body } = await change({ base_url: attacker.url });
  expect(status).toBe(200);
  expect(body.result.headers).toBe("");
  expect(body.messages).toHaveLength(1);
  expect(body.messages[0]).toContain("X-Api-Key, x-team");
  await call();
  expect(attacker.requests).toHaveLength(1);
  expect(received(attacker)).not.toContain(SECRET);
  // Changing the URL back does not restore the values.
  await change({ base_url: `${provider.url}/api` });
  await call();
  expect(received(provider)).not.toContain(SECRET);
});

it("another port, path or scheme removes them, also if the request claims to include them", async () => {
  for (const base_url of [
    attacker.url,
    `${provider.url}/api/other`,
    `${provider.url.replace("http:", "https:")}/api`,
  ]) {
    const other = await create(server, `${slug}-${new URL(base_url).port}-${base_url.length}`);
    const headers = JSON.stringify({ "X-Api-Key": "[secret]", "x-team": "blue" });
    const { body } = await server.api("PATCH", `${PATH}/${other}`, { base_url, headers }, editor);
    expect(body.result.headers).toBe('{"x-team":"[secret]"}');
    expect(body.messages[0]).toContain("X-Api-Key");
  }
});

it("an equivalent spelling of the base URL keeps them", async () => {
  const upper = provider.url.replace("http://", "HTTP://");
  const { body } = await change({ base_url: `${upper}/api/`, name: "Renamed", enable: true });
  expect(body).toMatchObject({
    messages: [],
    result: { headers: '{"X-Api-Key":"[secret]","x-team":"[secret]"}' },
  });
  await call();
  expect(provider.requests[0]?.headers).toMatchObject({ "x-api-key": SECRET, "x-team": "red" });
});

it("the redacted values of a read can be written back, unchanged or with other headers", async () => {
  const { result } = (await server.api("GET", `${PATH}/${id}`, undefined, editor)).body;
  const same = await change(result);
  expect(same.body).toMatchObject({
    success: true,
    messages: [],
    result: { ...result, modified_at: expect.any(String) },
  });
  await change({ ...result, headers: JSON.stringify({ "x-api-key": "[secret]", "x-new": "1" }) });
  await call();
  expect(provider.requests[0]?.headers).toMatchObject({ "x-api-key": SECRET, "x-new": "1" });
  expect(provider.requests[0]?.headers["x-team"]).toBeUndefined();
  const misspelt = await change({ ...result, baseurl: "x" });
  expect(misspelt.status).toBe(400);
  expect(misspelt.body.errors[0].message).toContain("baseurl");
  expect((await change({ slug: "other" })).status).toBe(400);
});

it("a stored value cannot be moved to another header", async () => {
  const { status, body } = await change({ headers: JSON.stringify({ "x-echoed-back": "[secret]" }) });
  expect(status).toBe(400);
  expect(body.errors[0].message).toContain("x-echoed-back");
  await call();
  expect(provider.requests[0]?.headers["x-api-key"]).toBe(SECRET);
});

it("a new provider of the same name gets no stored value", async () => {
  await server.api("DELETE", `${PATH}/${id}`, undefined, editor);
  const headers = JSON.stringify({ "X-Api-Key": "[secret]" });
  const again = { name: "x", slug, base_url: attacker.url };
  expect((await server.api("POST", PATH, { ...again, headers }, editor)).status).toBe(400);
  expect((await server.api("POST", PATH, again, editor)).status).toBe(200);
  await call();
  expect(received(attacker)).not.toContain(SECRET);
});

async function filesWith(dataDir: string, text: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of await readdir(dataDir)) {
    if (name.startsWith("signalbox.db") && (await readFile(join(dataDir, name))).includes(text))
      found.push(name);
  }
  return found;
}

it("stored values are encrypted: the database alone reveals nothing, and a copied row cannot be decrypted", async () => {
  const first = await startTestServer({ file: FILE });
  await create(first, "sealed");
  const target = await create(first, "target");
  expect(await filesWith(first.dataDir, "sk-live")).toEqual([]);
  expect((await stat(join(first.dataDir, "encryption-key"))).mode & 0o777).toBe(0o600);
  await first.service.stop();
  const database = new DatabaseSync(join(first.dataDir, "signalbox.db"));
  const { details } = database.prepare("SELECT details FROM custom_provider WHERE slug = 'sealed'").get() as {
    details: string;
  };
  // A writer to the database redirects the encrypted values.
  database
    .prepare("UPDATE custom_provider SET details = ? WHERE id = ?")
    .run(details.replaceAll(provider.url, attacker.url), target);
  database.close();
  const second = await startTestServer({ file: FILE, dataDir: first.dataDir });
  expect((await call("sealed", second)).status).toBe(200);
  expect((await call("target", second)).status).toBe(502);
  expect(attacker.requests).toEqual([]);
  await second.stop();
  await first.stop();
});

it("values stored in plain text by an earlier version are encrypted at the next start", async () => {
  const first = await startTestServer({ file: FILE });
  const ids: string[] = [];
  for (let i = 0; i < 6; i++) ids.push(await create(first, `old-${i}`));
  await first.service.stop();
  const database = new DatabaseSync(join(first.dataDir, "signalbox.db"));
  const write = database.prepare("UPDATE custom_provider SET details = ? WHERE id = ?");
  for (const [i, old] of ids.entries()) {
    // Rows of one page and of several.
    const logo = "x".repeat(i % 2 === 0 ? 0 : 9000);
    const headers = JSON.stringify({ "X-Api-Key": SECRET, "x-more": `sk-live-${"y".repeat(i * 400)}` });
    const details = { name: "old", base_url: `${provider.url}/api`, description: "", enable: true, headers };
    write.run(JSON.stringify({ ...details, link: "", logo, position: i }), old);
  }
  database.close();
  expect(await filesWith(first.dataDir, "sk-live")).not.toEqual([]);
  const second = await startTestServer({ file: FILE, dataDir: first.dataDir });
  await call("old-5", second);
  expect(provider.requests[0]?.headers["x-api-key"]).toBe(SECRET);
  expect((await second.api("GET", PATH)).body.result).toHaveLength(6);
  await second.stop();
  expect(await filesWith(first.dataDir, "sk-live")).toEqual([]);
  await first.stop();
});

it("headers encrypted with another key: the provider is named, its calls are refused, and the rest is served", async () => {
  const withKey = (key: string, dataDir?: string) =>
    startTestServer({
      file: FILE,
      environment: { SIGNALBOX_ENCRYPTION_KEY: key },
      ...(dataDir === undefined ? {} : { dataDir }),
    });
  const [oldKey, newKey] = ["the old key has thirty-two letters!", "the new key has thirty-two letters!"];
  const first = await withKey(oldKey);
  await create(first, "sealed");
  await first.api("POST", PATH, { name: "open", slug: "open", base_url: provider.url });
  await first.service.stop();

  const wrong = await withKey(newKey, first.dataDir);
  expect(wrong.logs.filter(({ level }) => level === "error")).toMatchObject([
    { provider: "custom-sealed", msg: expect.stringContaining("SIGNALBOX_ENCRYPTION_KEY") },
  ]);
  const refused = await call("sealed", wrong);
  expect(refused.status).toBe(502);
  expect(refused.body).toContain("custom-sealed");
  expect((await call("open", wrong)).status).toBe(200);
  // The entry stays complete: it needs only the right key.
  const listed = await wrong.api("GET", PATH);
  expect(JSON.stringify(listed.body.result)).toContain("X-Api-Key");
  await wrong.service.stop();

  const rotating = await withKey(`${newKey},${oldKey}`, first.dataDir);
  expect((await call("sealed", rotating)).status).toBe(200);
  await rotating.service.stop();
  const rotated = await withKey(newKey, first.dataDir);
  provider.requests.length = 0;
  await call("sealed", rotated);
  expect(provider.requests[0]?.headers["x-api-key"]).toBe(SECRET);
  await rotated.stop();
  await first.stop();
});

it("moving from a generated key to one in the environment loses nothing", async () => {
  const first = await startTestServer({ file: FILE });
  await create(first, "moved");
  await first.service.stop();
  const environment = { SIGNALBOX_ENCRYPTION_KEY: "the operator's own key is long enough" };
  const second = await startTestServer({ file: FILE, environment, dataDir: first.dataDir });
  expect((await call("moved", second)).status).toBe(200);
  await second.stop();
  await expect(
    startTestServer({ environment: { SIGNALBOX_ENCRYPTION_KEY: "too short" }, dataDir: first.dataDir }),
  ).rejects.toThrow("SIGNALBOX_ENCRYPTION_KEY: expected at least 32 characters");
  await first.stop();
});
