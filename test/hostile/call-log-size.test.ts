/** Unauthenticated callers send large bodies through a gateway: the call log stays within its size limit. */
import { randomBytes } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { post } from "../support/gateway.ts";
import { readMetric } from "../support/read-metric.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const LOGS = "/accounts/default/ai-gateway/gateways/default/logs";
const MB = 1024 * 1024;
const LIMIT = 8 * MB;
const FILE = { gateway: { logs: { maxTotalBytes: LIMIT } } };

async function logBytes(server: TestServer): Promise<number> {
  const folder = join(server.dataDir, "logs");
  const sizes = await Promise.all(
    (await readdir(folder)).map(async (name) => (await stat(join(folder, name))).size),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function flood(server: TestServer, calls: number): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < calls; i++) {
    const content = randomBytes(MB).toString("base64");
    const { headers } = await post(server, "echo/chat/completions", {
      body: JSON.stringify({ model: "echo", messages: [{ role: "user", content }] }),
    });
    ids.push(String(headers["gw-aig-log-id"]));
  }
  return ids;
}

it("the oldest bodies are removed, rows and figures stay, also after a restart", async () => {
  const first = await startTestServer({ file: FILE });
  const ids = await flood(first, 12);
  // Metrics are collected at intervals, so both values are polled.
  await expect
    .poll(() => readMetric(first, 'signalbox_gateway_log_removed_total{kind="body"}'))
    .toBeGreaterThan(5);
  await expect.poll(() => readMetric(first, "signalbox_gateway_log_bytes")).toBeLessThanOrEqual(LIMIT);
  expect(await readMetric(first, 'signalbox_gateway_log_removed_total{kind="row"}')).toBe(0);
  // The file has a WAL of up to 4 MiB, and one batch may exceed it.
  expect(await logBytes(first)).toBeLessThanOrEqual(LIMIT + 8 * MB);
  expect(first.logs.filter(({ msg }) => String(msg).includes("maxTotalBytes"))).toHaveLength(1);

  const { body: oldest } = await first.api("GET", `${LOGS}/${ids[0]}`);
  expect(oldest.result).toMatchObject({
    id: ids[0],
    success: true,
    request_body_removed: true,
    response_body_removed: true,
  });
  expect(oldest.result.request_head).toBeUndefined();
  const gone = await first.api("GET", `${LOGS}/${ids[0]}/request`);
  expect(gone.status).toBe(404);
  expect(gone.body.errors[0].message).toContain(
    "removed, to keep stored calls within gateway.logs.maxTotalBytes",
  );
  const newest = await first.api("GET", `${LOGS}/${ids.at(-1)}`);
  expect(newest.body.result.request_head).toContain("echo");
  expect(newest.body.result.request_body_removed).toBeUndefined();
  await first.service.stop();
  // The newest file keeps its largest size: the limit plus one commit.
  expect(await logBytes(first)).toBeLessThanOrEqual(LIMIT + 4 * MB);

  const second = await startTestServer({ file: FILE, dataDir: first.dataDir });
  await flood(second, 4);
  await second.service.stop();
  const third = await startTestServer({ file: FILE, dataDir: first.dataDir });
  expect(await logBytes(third)).toBeLessThanOrEqual(LIMIT + 4 * MB);
  const { body } = await third.api("GET", `${LOGS}?per_page=50`);
  expect(body.result_info.total_count).toBe(16);
  const usage = await third.api("GET", "/accounts/default/ai-gateway/usage");
  expect(usage.body.result).toMatchObject([{ calls: 16 }]);
  await third.stop();
  await second.stop();
  await first.stop();
});
