/** The process is killed during the deletion of a gateway. */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { startServerProcess } from "../support/server-process.ts";

const ROOT = "root-token-of-the-deletion-test";
const GATEWAYS = "/accounts/default/ai-gateway/gateways";

it("nothing of a gateway is left after `kill -9` during its deletion", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "signalbox-deletion-"));
  const env = { SIGNALBOX_ROOT_TOKEN: ROOT };
  const api = async (url: string, method: string, path: string, body?: unknown) => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${ROOT}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as { result: unknown } };
  };
  const first = await startServerProcess(["--data-dir", dataDir], { env });
  await api(first.url, "POST", GATEWAYS, { id: "g" });
  await api(first.url, "PUT", "/accounts/default/tags", {
    resource_type: "ai_gateway",
    resource_id: "g",
    tags: { env: "old" },
  });
  await api(first.url, "POST", `${GATEWAYS}/g/tokens`, { name: "old" });
  await fetch(`${first.url}/v1/default/g/echo/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "echo", messages: [{ role: "user", content: "old" }] }),
  });
  expect((await api(first.url, "GET", `${GATEWAYS}/g/logs`)).body.result).toHaveLength(1);

  // The day file is locked, so the deletion stops between its steps.
  const [file = ""] = (await readdir(join(dataDir, "logs"))).filter((name) => name.endsWith(".db"));
  const holder = new DatabaseSync(join(dataDir, "logs", file));
  holder.exec("BEGIN IMMEDIATE");
  const deletion = api(first.url, "DELETE", `${GATEWAYS}/g`).catch(() => null);
  await expect
    .poll(async () => (await api(first.url, "GET", `${GATEWAYS}/g`)).status, { timeout: 5000 })
    .toBe(404);
  await first.end("SIGKILL");
  await deletion;
  holder.exec("ROLLBACK");
  holder.close();

  const second = await startServerProcess(["--data-dir", dataDir], { env });
  expect((await api(second.url, "POST", GATEWAYS, { id: "g" })).status).toBe(200);
  expect((await api(second.url, "GET", `${GATEWAYS}/g/logs`)).body.result).toEqual([]);
  const usage = await api(second.url, "GET", "/accounts/default/ai-gateway/usage?gateway_id=g");
  expect(JSON.stringify(usage.body.result)).not.toContain('"calls":1');
  const tokens = await api(second.url, "GET", "/accounts/default/tokens");
  expect(JSON.stringify(tokens.body.result)).not.toContain('"old"');
  const tagged = await api(second.url, "GET", "/accounts/default/tags/resources?tag=env");
  expect(tagged.body.result).toEqual([]);
  await second.end("SIGTERM");
  await rm(dataDir, { recursive: true, force: true });
}, 30_000);
