/** The data of a server that has run for a month: calls, tags, instances and deliveries. */
import { createHmac } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CallLog } from "../../packages/signalbox/src/engines/call-log/call-log.ts";
import { SqliteCallLog } from "../../packages/signalbox/src/engines/call-log/sqlite-call-log.ts";
import { callRecord, LOG_OPTIONS } from "./call-record.ts";
import { runLoad } from "./load.ts";
import { buildRequest, SEQUENCE_MARKER } from "./requests.ts";

export const GATEWAYS = ["default", "internal", "batch", "evaluation"];
const MODELS = Array.from({ length: 12 }, (_, i) => `model-${i}`);
const TOKENS = 50;
export const USERS = 5000;
const BODY = Buffer.from(JSON.stringify({ content: "lorem ipsum dolor ".repeat(56) }));
const SHARE_WITH_BODIES = 0.3;
const FAILED = 0.02;
/** A little less than the calls are kept. */
export const DAYS = 29.4;
const DAY_MS = 86_400_000;
/** Calls between two turns of the event loop. */
const BURST = 64;
/** A prime: consecutive calls differ in everything, and the data are the same on every machine. */
const STRIDE = 7919;

/** Stores calls of the last `DAYS` days in a data folder of a server that does not run. */
export async function storeCallsIn(dataDir: string, count: number): Promise<void> {
  const folder = join(dataDir, "logs");
  mkdirSync(folder, { recursive: true });
  await storeCalls(await SqliteCallLog.open({ ...LOG_OPTIONS, maxAgeDays: 31, folder }), count);
}

/** Stores calls of the last `DAYS` days, oldest first, and closes the log. */
export async function storeCalls(log: CallLog, count: number): Promise<void> {
  const start = Date.now() - DAYS * DAY_MS;
  let lastId = "";
  for (let i = 0; i < count;) {
    if (!log.hasRoom) await log.whenRoom();
    for (const end = Math.min(count, i + BURST); i < end; i++) {
      const mixed = (i * STRIDE) % 1_000_003;
      const body = mixed % 100 < SHARE_WITH_BODIES * 100 ? BODY : null;
      const isFailed = mixed % 1000 < FAILED * 1000;
      const call = callRecord({
        createdAt: Math.floor(start + (i / count) * DAYS * DAY_MS),
        gatewayId: mixed % 10 < 6 ? "default" : (GATEWAYS[1 + (mixed % 3)] ?? "default"),
        model: MODELS[mixed % MODELS.length] ?? "",
        tokenId: `token-${mixed % TOKENS}`,
        metadata: JSON.stringify({ user: `user-${mixed % USERS}`, team: `team-${mixed % 40}` }),
        statusCode: isFailed ? 500 : 200,
        success: !isFailed,
        tokensIn: 100 + (mixed % 4000),
        cost: (100 + (mixed % 4000)) * 1e-6,
        requestBody: body,
        responseBody: body,
      });
      log.record(call);
      lastId = call.id;
    }
    await nextTurn();
  }
  await log.get({ accountId: "default", gatewayId: "default" }, lastId);
  await log.close();
}

/** One delivery to each of `count` instances that do not exist yet; each stays in the list of deliveries. */
export async function sendDeliveries(port: number, secret: string, count: number): Promise<void> {
  const requests = Array.from({ length: count }, (_, i) => {
    const body = JSON.stringify({ type: i % 50 === 0 ? "alarm" : "reading", value: i });
    const signature = createHmac("sha256", secret).update(body).digest("hex");
    const headers = {
      "content-type": "application/json",
      "x-signature": `sha256=${signature}`,
      "x-event-id": `growth-${SEQUENCE_MARKER}`,
    };
    return buildRequest("POST", `/webhooks/device-${i}`, headers, body);
  });
  // The time ends a server that hangs.
  await runLoad({ port, connections: 16, durationMs: 900_000, maxRequests: count, requests });
}
