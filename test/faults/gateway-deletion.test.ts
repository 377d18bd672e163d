/** The process is killed during the deletion of a gateway. */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { sendRequest } from "../support/send-request.ts";
import { startServerProcess } from "../support/server-process.ts";

const GATEWAYS = "/accounts/default/ai-gateway/gateways";

it("nothing of a gateway is left after `kill -9` during its deletion", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "signalbox-deletion-"));
  const env = { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN };
  const first = await startServerProcess(["--data-dir", dataDir], { env });
  await sendRequest(first, "POST", GATEWAYS, { id: "g" });
  await sendRequest(first, "PUT", "/accounts/default/tags", {
    resource_type: "ai_gateway",
    resource_id: "g",
    tags: { env: "old" },
  });
  await sendRequest(first, "POST", `${GATEWAYS}/g/tokens`, { name: "old" });
  await fetch(`${first.url}/v1/default/g/echo/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "echo", messages: [{ role: "user", content: "old" }] }),
  });
  expect((await sendRequest(first, "GET", `${GATEWAYS}/g/logs`)).body.result).toHaveLength(1);

  // The day file is locked, so the deletion stops between its steps.
  const [file = ""] = (await readdir(join(dataDir, "logs"))).filter((name) => name.endsWith(".db"));
  const holder = new DatabaseSync(join(dataDir, "logs", file));
  holder.exec("BEGIN IMMEDIATE");
  const deletion = sendRequest(first, "DELETE", `${GATEWAYS}/g`).catch(() => null);
  await expect.poll(async () => (await sendRequest(first, "GET", `${GATEWAYS}/g`)).status).toBe(404);
  await first.end("SIGKILL");
  await deletion;
  holder.exec("ROLLBACK");
  holder.close();

  const second = await startServerProcess(["--data-dir", dataDir], { env });
  expect((await sendRequest(second, "POST", GATEWAYS, { id: "g" })).status).toBe(200);
  expect((await sendRequest(second, "GET", `${GATEWAYS}/g/logs`)).body.result).toEqual([]);
  const usage = await sendRequest(second, "GET", "/accounts/default/ai-gateway/usage?gateway_id=g");
  expect(JSON.stringify(usage.body.result)).not.toContain('"calls":1');
  const tokens = await sendRequest(second, "GET", "/accounts/default/tokens");
  expect(JSON.stringify(tokens.body.result)).not.toContain('"old"');
  const tagged = await sendRequest(second, "GET", "/accounts/default/tags/resources?tag=env");
  expect(tagged.body.result).toEqual([]);
  await second.end("SIGTERM");
  await rm(dataDir, { recursive: true, force: true });
});
