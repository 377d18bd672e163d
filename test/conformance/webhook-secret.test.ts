/** Who gets a generated secret for generic webhooks: a single embedded node that serves, and nobody else. */
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadConfig } from "../../packages/signalbox/src/config/index.ts";
import { startService } from "../../packages/signalbox/src/service.ts";
import { createLogger } from "../../packages/signalbox/src/telemetry/logger.ts";
import { openTestPostgres, type TestPostgres } from "../support/test-postgres.ts";
import { sendGeneric, SECRET } from "../support/webhook-sender.ts";

let folder: string;
let postgres: TestPostgres;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-secret-"));
  postgres = await openTestPostgres();
});

afterAll(async () => {
  await postgres.drop();
  await rm(folder, { recursive: true, force: true });
});

async function start(dataDir: string, environment: Record<string, string> = {}) {
  const lines: string[] = [];
  const config = await loadConfig({ port: "0", dataDir: join(folder, dataDir) }, environment, folder);
  const service = await startService({
    config,
    logger: createLogger({
      level: "info",
      isPretty: false,
      destination: { write: (line) => void lines.push(line) },
    }),
    makesWebhookSecret: true,
    onFatal: (error) => {
      throw error;
    },
  });
  return { service, log: () => lines.join(""), secretFile: join(folder, dataDir, "webhook-secret") };
}

it("on the embedded database one is made, kept over restarts, and readable by its owner only", async () => {
  const first = await start("embedded");
  const secret = await readFile(first.secretFile, "utf8");
  expect((await stat(first.secretFile)).mode & 0o777).toBe(0o600);
  const send = (url: string) =>
    sendGeneric(url, "device", { type: "t", id: crypto.randomUUID() }, {}, secret.trim());
  expect((await send(first.service.url)).status).toBe(200);
  await first.service.stop();
  const second = await start("embedded");
  expect((await send(second.service.url)).status).toBe(200);
  await second.service.stop();
});

it("on PostgreSQL it must be set: without it every delivery is 401, and the log says what to set", async () => {
  const node = await start("on-postgres", { DATABASE_URL: postgres.url });
  expect(existsSync(node.secretFile)).toBe(false);
  expect((await sendGeneric(node.service.url, "device", { type: "t" })).status).toBe(401);
  expect(node.log()).toContain("set WEBHOOK_SECRET");
  await node.service.stop();
  const told = await start("on-postgres", { DATABASE_URL: postgres.url, WEBHOOK_SECRET: SECRET });
  expect((await sendGeneric(told.service.url, "device", { type: "t" })).status).toBe(200);
  await told.service.stop();
});

it("a process that is refused leaves no secret behind", async () => {
  const owner = await start("owner", { DATABASE_URL: postgres.url });
  await expect(start("refused", { DATABASE_URL: postgres.url })).rejects.toThrow("in use by another");
  expect(existsSync(join(folder, "refused", "webhook-secret"))).toBe(false);
  await owner.service.stop();
});
