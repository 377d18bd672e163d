import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SignalboxError } from "@signalbox/protocol";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { migrate } from "../../database/migrate.ts";
import type { Database } from "../../database/database.ts";
import { sql } from "../../core/sql.ts";
import { SqliteDatabase } from "../../database/sqlite/sqlite-database.ts";
import type { Gateway } from "../settings/gateway.ts";
import { DEFAULT_SETTINGS, gatewayUpdate, pickSettings } from "../settings/gateway-settings.ts";
import type { Grant } from "./grant.ts";
import { Refusal } from "./limit-refusal.ts";
import { gatewayOwner, Limits } from "./limits.ts";
import { LocalLedger } from "./local-ledger.ts";
import { SpendJournal } from "./spend-journal.ts";
import { SpendStore } from "./spend-store.ts";

const HOUR = 3_600_000;
let now = Date.UTC(2030, 0, 1, 12);
let folder: string;
let stored: Database;
let isFailing: boolean;
let errors: unknown[];
let store: SpendStore;
let ledger: LocalLedger;
let limits: Limits;

/** The real database, whose writes can be made to fail. */
function database(): Database {
  return {
    engine: stored.engine,
    problem: null,
    all: (query) => stored.all(query),
    scan: (query, turn) => stored.scan(query, turn),
    get: (query) => stored.get(query),
    run: (query) => (isFailing ? Promise.reject(new Error("disk is full")) : stored.run(query)),
    transaction: (work) => (isFailing ? Promise.reject(new Error("disk is full")) : stored.transaction(work)),
    close: () => stored.close(),
  };
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-spend-"));
  stored = await SqliteDatabase.open(join(folder, "test.db"), (error) => {
    throw error;
  });
  await migrate(stored);
  await stored.run(sql`INSERT INTO account (id, name, created_at) VALUES ('default', 'default', 0)`);
  isFailing = false;
  errors = [];
  create();
  await ledger.start();
});
afterEach(async () => {
  isFailing = false;
  await ledger.stop();
  await stored.close();
  await rm(folder, { recursive: true, force: true });
});

function create(): void {
  const clock = { now: () => now };
  const onError = (error: unknown) => errors.push(error);
  const journal = new SpendJournal({ folder: join(folder, "limits"), newId: "j", onError });
  store = new SpendStore({ database: database(), journal, clock, onError });
  ledger = new LocalLedger({ store, clock, steadyClock: clock, onSoftBudget: () => undefined });
  limits = new Limits(ledger);
}

async function addGateway(rule: object, createdAt = 1): Promise<Gateway> {
  const spend_limits = {
    enabled: true,
    rules: [{ id: "r", limitType: "cost", limit: 10, window: 3600, ...rule }],
  };
  const settings = { ...DEFAULT_SETTINGS, ...pickSettings(gatewayUpdate.parse({ spend_limits })) };
  await stored.run(
    sql`INSERT INTO gateway (account_id, id, settings, is_default, created_at, modified_at)
        VALUES ('default', 'g', ${JSON.stringify(settings)}, 0, ${createdAt}, ${createdAt})`,
  );
  return {
    accountId: "default",
    id: "g",
    isDefault: false,
    createdAt,
    modifiedAt: createdAt,
    settings,
    cacheGeneration: 0,
  };
}

/** The gateway with another rule. */
function changed(gateway: Gateway, rule: object): Gateway {
  const rules = [{ id: "r", limitType: "cost", limit: 10, window: 3600, ...rule }];
  const settings = { ...gateway.settings, ...pickSettings(gatewayUpdate.parse({ spend_limits: { rules } })) };
  return { ...gateway, settings };
}

/** Reserves; returns the refusal, or what settles the call. */
function reserve(
  gateway: Gateway,
  dollars: number,
  user?: string,
): SignalboxError | ((cost: number) => void) {
  const rules = limits.rulesOf(gateway, null);
  if (rules === null) throw new Error("the gateway has no rules");
  rules.setMetadata(user === undefined ? null : JSON.stringify({ user }));
  const step = { provider: "openai", model: "m", cost: dollars, most: dollars, tokens: 0, isBounded: true };
  const taken = rules.reserve([step]);
  if (taken instanceof Promise) throw new Error("amounts in memory cause no delay");
  if (taken instanceof Refusal) return taken.toError();
  return (cost) => rules.settle(taken, [{ provider: "openai", models: ["m"], cost, tokens: 0 }]);
}
function spend(gateway: Gateway, dollars: number, user?: string): void {
  const settle = reserve(gateway, dollars, user);
  if (typeof settle !== "function") throw settle;
  settle(dollars);
}
function refusal(gateway: Gateway, dollars = 1, user?: string): SignalboxError | null {
  const settle = reserve(gateway, dollars, user);
  if (typeof settle !== "function") return settle;
  settle(0);
  return null;
}
const rows = () =>
  stored.all<{ bucket: string; slot_start: number; amount: number }>(
    sql`SELECT bucket, slot_start, amount FROM limit_amount ORDER BY bucket, slot_start`,
  );
async function restart(): Promise<void> {
  await ledger.stop();
  create();
  await ledger.start();
}
function forget(gateway: Gateway): void {
  ledger.forget(gatewayOwner(gateway));
}

it("keeps amounts that it could not write, and writes them later with those settled since", async () => {
  const gateway = await addGateway({});
  spend(gateway, 2);
  isFailing = true;
  await expect(store.flush()).rejects.toThrow("disk is full");
  spend(gateway, 3);
  await expect(store.flush()).rejects.toThrow("disk is full");
  expect(errors).toHaveLength(2);
  isFailing = false;
  await store.flush();
  expect(await rows()).toMatchObject([{ bucket: "r", amount: 5_000_000 }]);
});

it("reports a failed periodic write, without an unhandled rejection", async () => {
  const gateway = await addGateway({});
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  await restart();
  spend(gateway, 2);
  isFailing = true;
  vi.advanceTimersByTime(1000);
  vi.useRealTimers();
  // An unhandled rejection would fail the run.
  await expect.poll(() => errors.length).toBe(1);
  isFailing = false;
  await store.flush();
  expect(await rows()).toHaveLength(1);
});

it("bounds the number of buckets; further values share one limit", async () => {
  const gateway = await addGateway({ limit: 1, metadata: { user: { mode: "partition" } } });
  for (let i = 0; i < 10_000; i++) spend(gateway, 1, `user-${i}`);
  expect(refusal(gateway, 1, "user-0")).not.toBeNull();
  spend(gateway, 1, "one-too-many");
  expect(refusal(gateway, 1, "another")).not.toBeNull();
  await store.flush();
  expect(await rows()).toHaveLength(10_001);
  await restart();
  expect(refusal(gateway, 1, "user-9999")).not.toBeNull();
  expect(refusal(gateway, 1, "another")).not.toBeNull();
  // The window is over: there is room for other values, and their rows go.
  now += HOUR;
  spend(gateway, 1, "another");
  spend(gateway, 1, "a-third");
  await store.flush();
  expect((await rows()).map(({ bucket }) => bucket)).toEqual([
    'r [["user","a-third"]]',
    'r [["user","another"]]',
  ]);
});

it("distinguishes long values without storing them", async () => {
  const gateway = await addGateway({ limit: 1, metadata: { user: { mode: "partition" } } });
  spend(gateway, 1, `${"x".repeat(9000)}a`);
  expect(refusal(gateway, 1, `${"x".repeat(9000)}a`)).not.toBeNull();
  expect(refusal(gateway, 1, `${"x".repeat(9000)}b`)).toBeNull();
  await restart();
  expect((await rows())[0]?.bucket.length).toBeLessThan(100);
  expect(refusal(gateway, 1, `${"x".repeat(9000)}a`)).not.toBeNull();
});

it("loads windows that have not expired and deletes the others", async () => {
  const gateway = await addGateway({ technique: "sliding" });
  spend(gateway, 2);
  now += HOUR / 2;
  spend(gateway, 3);
  await restart();
  expect(refusal(gateway, 6)).not.toBeNull();
  now += (HOUR * 3) / 4;
  await restart();
  expect(await rows()).toHaveLength(1);
  expect(refusal(gateway, 7)).toBeNull();
});

it("drops the amounts of a deleted gateway, also of calls that end after a gateway of the same name was created", async () => {
  const old = await addGateway({}, 1);
  spend(old, 5);
  const settle = reserve(old, 5);
  await stored.run(sql`DELETE FROM gateway`);
  forget(old);
  const fresh = await addGateway({}, 2);
  if (typeof settle === "function") settle(5);
  expect(refusal(fresh, 10)).toBeNull();
  await store.flush();
  expect(await rows()).toEqual([]);
  await restart();
  expect(refusal(fresh, 10)).toBeNull();
});

it.each([
  ["fixed", 3],
  ["fixed", 7],
  ["sliding", 3],
  ["sliding", 7],
])("reports when the call may pass (%s, %i dollars)", async (technique, estimate) => {
  const gateway = await addGateway({ technique });
  now = Date.UTC(2030, 0, 2, 12);
  spend(gateway, 4);
  now += HOUR / 4;
  spend(gateway, 4);
  const retryAfter = Number(refusal(gateway, estimate)?.headers["retry-after"]);
  now += (retryAfter - 1) * 1000;
  expect(refusal(gateway, estimate)).not.toBeNull();
  now += 1000;
  expect(refusal(gateway, estimate)).toBeNull();
});

it("reports no time for a call that costs more than the limit", async () => {
  const gateway = await addGateway({});
  const error = refusal(gateway, 11);
  expect(error?.message).toContain("this call alone");
  expect(error?.headers["retry-after"]).toBeUndefined();
});

it("counts amounts from a clock that was ahead as spent now, once, across restarts", async () => {
  const gateway = await addGateway({});
  now += 24 * HOUR;
  spend(gateway, 8);
  await store.flush();
  now -= 24 * HOUR;
  await restart();
  expect(refusal(gateway, 3)).not.toBeNull();
  await restart();
  expect(refusal(gateway, 3)).not.toBeNull();
  now += HOUR;
  await restart();
  expect(refusal(gateway, 10)).toBeNull();
});

it("keeps what was spent when the window of a rule changes", async () => {
  const gateway = await addGateway({});
  spend(gateway, 8);
  const day = changed(gateway, { window: "day" });
  expect(refusal(day, 3)).not.toBeNull();
  now += HOUR;
  await restart();
  expect(refusal(day, 3)).not.toBeNull();
});

it("gives credit without a window back never, and more of it at once when the limit is raised", async () => {
  const gateway = await addGateway({ window: null });
  spend(gateway, 9);
  now += 1000 * HOUR;
  await restart();
  const error = refusal(gateway, 2);
  expect(error?.fields).toMatchObject({ rule: "r", spent: 9, limit: 10, reset_at: null });
  expect(error?.headers["retry-after"]).toBeUndefined();
  expect(refusal(changed(gateway, { window: null, limit: 11 }), 2)).toBeNull();
});

it("counts calls that were running when the process was killed with what they had reserved", async () => {
  const gateway = await addGateway({});
  spend(gateway, 2);
  reserve(gateway, 3);
  // The records leave the process at the end of the turn.
  await new Promise(setImmediate);
  create();
  await ledger.start();
  expect(refusal(gateway, 6)).not.toBeNull();
  expect(refusal(gateway, 5)).toBeNull();
  expect(await rows()).toMatchObject([{ amount: 5_000_000 }]);
});

it("counts an amount once if the process is killed after the database has it", async () => {
  const gateway = await addGateway({});
  spend(gateway, 2);
  await store.flush();
  spend(gateway, 3);
  await new Promise(setImmediate);
  create();
  await ledger.start();
  expect(await rows()).toMatchObject([{ amount: 5_000_000 }]);
});

it("grants of one call end one by one: what each held is free at once, in the journal too", async () => {
  const gateway = await addGateway({});
  const rules = limits.rulesOf(gateway, null);
  if (rules === null) throw new Error("the gateway has no rules");
  const take = (cost: number): Grant => {
    const step = { provider: "openai", model: "m", cost, most: cost, tokens: 0, isBounded: true };
    const taken = rules.reserve([step]);
    if (taken instanceof Promise || taken instanceof Refusal) throw new Error("the amount fits");
    return taken;
  };
  const first = take(6);
  const beside = take(3);
  expect(refusal(gateway, 2)).not.toBeNull();
  beside.release();
  expect(refusal(gateway, 5)).not.toBeNull();
  expect(refusal(gateway, 4)).toBeNull();
  first.release();
  // A grant that is over has no effect any more.
  first.release();
  beside.release();
  expect(refusal(gateway, 10)).toBeNull();
  expect(refusal(gateway, 11)).not.toBeNull();
  await restart();
  expect(refusal(gateway, 10)).toBeNull();
});
