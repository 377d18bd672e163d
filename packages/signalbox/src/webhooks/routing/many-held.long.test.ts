/** 20,000 events that a paused route holds are delivered at the route's rate when it is resumed, on a clock that the test moves. */
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { Registry } from "prom-client";
import { expect, it } from "vitest";
import { ENGINES } from "../../../../../test/support/engines.ts";
import { webhookKeys } from "../../config/webhook-keys.ts";
import { managedRoute } from "../../config/webhook-route-keys.ts";
import { Sealing } from "../../core/sealing.ts";
import { Secret } from "../../core/secret.ts";
import { sql } from "../../core/sql.ts";
import { ulid } from "../../core/ulid.ts";
import { LocalSettings } from "../../database/shared-settings.ts";
import { DeliveryLog } from "../delivery-log.ts";
import { EntityClaims } from "../entity-claims.ts";
import { createSources } from "../source.ts";
import { Routing } from "./routing.ts";

/** Twenty seconds of the rate, and more than are read at once or run at the same time. */
const HELD = 20_000;
const PER_SECOND = 1000;
const START = 1_800_000_000_000;
const ID = { accountId: "default", source: "generic", name: "main" };
const KEY = JSON.stringify(["default", "generic", "main"]);

it("20,000 held events resume at the rate of the route, each once, and none before its second", async () => {
  const [, open] = ENGINES[0] ?? [];
  if (open === undefined) throw new Error("there is no engine");
  const opened = await open();
  const { database } = opened;
  await database.run(
    sql`INSERT INTO account (id, name, created_at) VALUES ('default', 'default', 0) ON CONFLICT DO NOTHING`,
  );
  let now = START;
  let count = 0;
  const ids = new Set<string>();
  const routing = new Routing({
    database,
    plainDatabase: database,
    settings: new LocalSettings(database),
    clock: { now: () => now },
    logger: pino({ level: "silent" }),
    sealing: new Sealing(new Secret("key")),
    registry: new Registry(),
    requests: {
      send: ({ headers }) => {
        count += 1;
        ids.add(headers["signalbox-event-id"] ?? "");
        return Promise.resolve({ status: 200, headers: {}, body: Buffer.from("") });
      },
    },
    alertFeed: { current: null },
    sources: createSources(webhookKeys.parse({}), { WEBHOOK_SECRET: "secret" }),
    environment: {},
    agents: { hasAgent: () => true },
    claims: new EntityClaims(database, () => undefined),
    log: new DeliveryLog(database, pino({ level: "silent" }), { keep: 100, onDropped: () => undefined }),
    nodes: null,
    mayBePrivate: true,
    keepDays: 7,
    maxStoredBytes: 1e9,
    deliver: () => Promise.resolve({ kind: "processed" }),
  });
  await routing.load();
  await routing.start();
  try {
    await routing.routes.put(
      ID,
      managedRoute.parse({
        to: { url: "http://receiver.example/" },
        rate: { limit: PER_SECOND, per: "second", concurrent: 256 },
        paused: true,
      }),
    );
    const body = Buffer.from('{"type":"t"}');
    const about = { accountId: "default", source: "generic", type: "t", entity: "e", receivedAt: START };
    for (let from = 0; from < HELD; from += 1000) {
      await routing.table.insert(
        Array.from({ length: 1000 }, (_, i) => {
          const id = ulid(START);
          const delivery = {
            ...about,
            id,
            deliveryId: String(from + i),
            batch: null,
            title: "t",
            isEntityExact: true,
            target: "/",
            contentType: null,
            headers: {},
            sealedHeaders: null,
            body,
          };
          const event = {
            ...about,
            id: ulid(START),
            name: "main",
            delivery: id,
            state: "waiting" as const,
            reason: null,
            dueAt: START,
            dedupeKey: null,
            dedupeSince: 0,
          };
          return { delivery, events: [event] };
        }),
      );
    }
    expect(count).toBe(0);
    await routing.routes.resume(ID);
    for (let second = 1; second <= HELD / PER_SECOND; second++) {
      now += 1000;
      const due = second * PER_SECOND;
      while (count < due * 0.98) {
        routing.dispatcher.wake([KEY]);
        await sleep(1);
      }
      expect(count).toBeLessThanOrEqual(due);
      while (routing.dispatcher.running > 0) await sleep(1);
    }
    while (ids.size < HELD) {
      now += 100;
      routing.dispatcher.wake([KEY]);
      await sleep(1);
    }
    expect([count, ids.size]).toEqual([HELD, HELD]);
  } finally {
    await routing.stop();
    await database.close();
    await opened.drop();
  }
});
