/** What both ledgers promise: one process with SQLite, and nodes that share a real PostgreSQL. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sql } from "../../core/sql.ts";
import { migrate } from "../../database/migrate.ts";
import { SqliteDatabase } from "../../database/sqlite/sqlite-database.ts";
import { type Charge, Grant, type Need } from "./grant.ts";
import type { Ledger } from "./ledger.ts";
import { Refusal } from "./limit-refusal.ts";
import type { LimitKind, LimitRule } from "./limit-rule.ts";
import { LocalLedger } from "./local-ledger.ts";
import { openSharedCluster } from "./shared-limits-fixture.ts";
import { SpendJournal } from "./spend-journal.ts";
import { SpendStore } from "./spend-store.ts";
import { createWindow } from "./window.ts";

/** Ledgers of the same amounts. */
interface Ledgers {
  open(): Promise<Ledger>;
  close(): Promise<void>;
}

async function openLocal(): Promise<Ledgers> {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-ledger-"));
  const database = await SqliteDatabase.open(join(folder, "test.db"), (error) => {
    throw error;
  });
  await migrate(database);
  await database.run(sql`INSERT INTO account (id, name, created_at) VALUES ('default', 'default', 0)`);
  const clock = { now: () => Date.now() };
  const onError = (error: unknown) => {
    throw error;
  };
  return {
    async open() {
      const journal = new SpendJournal({ folder: join(folder, "limits"), newId: "j", onError });
      const store = new SpendStore({ database, journal, clock, onError });
      const ledger = new LocalLedger({ store, clock, steadyClock: clock, onSoftBudget: () => undefined });
      await ledger.start();
      return ledger;
    },
    async close() {
      await database.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function openShared(): Promise<Ledgers> {
  const cluster = await openSharedCluster();
  return {
    async open() {
      const node = await cluster.openNode();
      return node.ledger;
    },
    async close() {
      expect(cluster.errors).toEqual([]);
      await cluster.close();
    },
  };
}

const LIMITS = { requests: 30, parallel: 4, tokens: 500, cost: 1000 } as const;
const KINDS = Object.keys(LIMITS) as LimitKind[];
type Amounts = Partial<Record<LimitKind, number>>;

let owners = 0;

/** One rule of each kind, of an owner that no other test uses. */
function createRules(): Record<LimitKind, LimitRule> {
  const owner = { accountId: "default", key: `gateway ledger-${++owners} 1` };
  const rule = (kind: LimitKind): LimitRule => ({
    owner,
    id: kind,
    name: kind,
    kind,
    limit: LIMITS[kind],
    window: createWindow(null),
    isSoft: false,
    conditions: null,
  });
  return {
    requests: rule("requests"),
    parallel: rule("parallel"),
    tokens: rule("tokens"),
    cost: rule("cost"),
  };
}

type Rules = ReturnType<typeof createRules>;

const isGiven = (entry: [LimitKind, number | undefined]): entry is [LimitKind, number] => (entry[1] ?? 0) > 0;
const entriesOf = (amounts: Amounts) =>
  KINDS.map((kind): [LimitKind, number | undefined] => [kind, amounts[kind]]).filter(isGiven);

function needsOf(ledger: Ledger, rules: Rules, amounts: Amounts): Need[] {
  return entriesOf(amounts).map(([kind, amount]) => ({
    rule: rules[kind],
    bucket: ledger.bucketsOf(rules[kind]).find(null),
    amount,
    expected: amount,
    isBounded: true,
    runsAlone: false,
    isForced: false,
    step: { provider: "openai", model: "m" },
  }));
}

function chargesOf(ledger: Ledger, rules: Rules, amounts: Amounts): Charge[] {
  return entriesOf(amounts).map(([kind, amount]) => {
    const rule = rules[kind];
    return { rule, bucket: ledger.bucketsOf(rule).find(null), amount };
  });
}

/** What is used and held of each rule, as a ledger knows it. */
async function stateOf(ledger: Ledger, rules: Rules): Promise<Record<string, [used: number, held: number]>> {
  const bucketOf = (kind: LimitKind) => ledger.bucketsOf(rules[kind]).find(null);
  await ledger.refresh([rules.cost.owner], (_, kind) => bucketOf(kind as LimitKind));
  return Object.fromEntries(
    KINDS.map((kind) => [kind, [bucketOf(kind).used(ledger.now(kind)), bucketOf(kind).reserved]]),
  );
}

const NOTHING = { requests: [0, 0], parallel: [0, 0], tokens: [0, 0], cost: [0, 0] };

/** A call: where it runs, what it needs, what it uses of that, and how it ends. */
interface Call {
  readonly node: number;
  readonly needs: Amounts;
  /** Of 100. */
  readonly share: number;
  readonly end: "settle" | "release";
  /** How many calls begin before it ends. */
  readonly length: number;
}

const NODES = 3;
const amountUpTo = (max: number) => fc.option(fc.integer({ min: 1, max }), { nil: 0 });
const call: fc.Arbitrary<Call> = fc.record({
  node: fc.nat(NODES - 1),
  needs: fc.record({
    requests: fc.constantFrom(0, 1),
    parallel: fc.constantFrom(0, 1),
    tokens: amountUpTo(200),
    cost: amountUpTo(400),
  }),
  share: fc.integer({ min: 0, max: 100 }),
  end: fc.constantFrom("settle" as const, "release" as const),
  length: fc.nat(8),
});

interface Running {
  readonly one: Call;
  readonly grant: Grant;
  left: number;
}

/** Plays calls that overlap, and counts beside the ledger what they hold and have used. */
class Play {
  readonly used: Record<LimitKind, number> = { requests: 0, parallel: 0, tokens: 0, cost: 0 };
  readonly #held: Record<LimitKind, number> = { requests: 0, parallel: 0, tokens: 0, cost: 0 };
  readonly #ledgers: readonly Ledger[];
  readonly #rules: Rules;
  #running: Running[] = [];

  constructor(ledgers: readonly Ledger[], rules: Rules) {
    this.#ledgers = ledgers;
    this.#rules = rules;
  }

  async begin(one: Call): Promise<void> {
    for (const running of this.#running) running.left -= 1;
    for (const running of this.#running.filter(({ left }) => left < 0)) this.#end(running);
    const ledger = this.#ledgers[one.node % this.#ledgers.length] as Ledger;
    const taken = await ledger.take(needsOf(ledger, this.#rules, one.needs));
    if (taken instanceof Refusal) {
      expect(taken.isChecked).toBe(true);
      return;
    }
    for (const [kind, amount] of entriesOf(one.needs)) {
      if (kind === "requests") this.used.requests += amount;
      else this.#held[kind] += amount;
    }
    for (const kind of KINDS) expect(this.used[kind] + this.#held[kind]).toBeLessThanOrEqual(LIMITS[kind]);
    this.#running.push({ one, grant: taken, left: one.length });
  }

  #end(running: Running): void {
    this.#running = this.#running.filter((other) => other !== running);
    const { one, grant } = running;
    const ledger = this.#ledgers[one.node % this.#ledgers.length] as Ledger;
    for (const [kind, amount] of entriesOf(one.needs)) if (kind !== "requests") this.#held[kind] -= amount;
    if (one.end === "release") return grant.release();
    const of = (amount = 0) => Math.floor((amount * one.share) / 100);
    const amounts = { tokens: of(one.needs.tokens), cost: of(one.needs.cost) };
    this.used.tokens += amounts.tokens;
    this.used.cost += amounts.cost;
    grant.settle(chargesOf(ledger, this.#rules, amounts));
  }

  endAll(): void {
    for (const running of this.#running) this.#end(running);
  }
}

describe.each([
  { name: "LocalLedger with SQLite", openLedgers: openLocal, nodes: 1, runs: 60 },
  { name: "SharedLedger with PostgreSQL", openLedgers: openShared, nodes: NODES, runs: 12 },
])("$name", ({ openLedgers, nodes, runs }) => {
  let source: Ledgers;
  let ledgers: Ledger[];
  /** A ledger that is alone knows its state at once; other nodes report theirs later. */
  const eventually = async (read: () => Promise<unknown>, expected: unknown) => {
    if (nodes === 1) expect(await read()).toEqual(expected);
    else await expect.poll(read).toEqual(expected);
  };

  beforeAll(async () => {
    source = await openLedgers();
    ledgers = [];
    for (let i = 0; i < nodes; i++) ledgers.push(await source.open());
  });
  afterAll(async () => {
    for (const ledger of ledgers) await ledger.stop();
    await source.close();
  });

  it("never lets calls hold and use more than a limit, counts exactly what they were charged with, and keeps nothing of a grant that is over", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: 20, maxLength: 60 }), async (calls) => {
        const rules = createRules();
        const play = new Play(ledgers, rules);
        // Some at the same time.
        for (let i = 0; i < calls.length; i += 5)
          await Promise.all(calls.slice(i, i + 5).map((one) => play.begin(one)));
        play.endAll();
        const { requests, tokens, cost } = play.used;
        const expected = { requests: [requests, 0], parallel: [0, 0], tokens: [tokens, 0], cost: [cost, 0] };
        for (const ledger of ledgers) await eventually(() => stateOf(ledger, rules), expected);
      }),
      { numRuns: runs, endOnFailure: true },
    );
  });

  it("takes all amounts, or none", async () => {
    const rules = createRules();
    const [ledger] = ledgers as [Ledger];
    const refused = await ledger.take(
      needsOf(ledger, rules, { requests: 1, parallel: 1, tokens: 5, cost: LIMITS.cost + 1 }),
    );
    expect(refused).toMatchObject({ isChecked: true, waitMs: Number.POSITIVE_INFINITY });
    expect(refused instanceof Refusal && refused.toError().id).toBe("gateway_spend_limit");
    expect(await stateOf(ledger, rules)).toEqual(NOTHING);
  });

  it("refuses only when nothing is left, and takes again what was given back, wherever it was taken", async () => {
    const rules = createRules();
    const take = async (i: number) => {
      const ledger = ledgers[i % ledgers.length] as Ledger;
      return ledger.take(needsOf(ledger, rules, { cost: 100 }));
    };
    for (let round = 0; round < 3; round++) {
      const taken = await Promise.all(Array.from({ length: 15 }, (_, i) => take(i + round)));
      const grants = taken.filter((one) => one instanceof Grant);
      expect(grants).toHaveLength(10);
      for (const grant of grants) grant.release();
      // Other nodes have to see it.
      for (const ledger of ledgers) await eventually(() => stateOf(ledger, rules), NOTHING);
    }
  });

  it("a grant ends once", async () => {
    const rules = createRules();
    const [ledger] = ledgers as [Ledger];
    const grant = await ledger.take(needsOf(ledger, rules, { parallel: 1, cost: 10 }));
    if (!(grant instanceof Grant)) throw new Error("there is room");
    grant.settle(chargesOf(ledger, rules, { cost: 7 }));
    grant.settle(chargesOf(ledger, rules, { cost: 7 }));
    grant.release();
    await eventually(() => stateOf(ledger, rules), { ...NOTHING, cost: [7, 0] });
  });

  it("charges what needed no grant, beyond the limit too", async () => {
    const rules = createRules();
    const [ledger] = ledgers as [Ledger];
    ledger.charge(chargesOf(ledger, rules, { cost: LIMITS.cost + 5, tokens: 3 }));
    await eventually(() => stateOf(ledger, rules), {
      ...NOTHING,
      tokens: [3, 0],
      cost: [LIMITS.cost + 5, 0],
    });
    const refused = await ledger.take(needsOf(ledger, rules, { cost: 1 }));
    expect(refused).toBeInstanceOf(Refusal);
  });

  it("what must not be refused is taken beyond a limit", async () => {
    const rules = createRules();
    const [ledger] = ledgers as [Ledger];
    ledger.charge(chargesOf(ledger, rules, { cost: LIMITS.cost }));
    await eventually(async () => (await stateOf(ledger, rules))["cost"], [LIMITS.cost, 0]);
    const forced = needsOf(ledger, rules, { cost: 50 }).map((need) => ({ ...need, isForced: true }));
    const grant = await ledger.take(forced);
    if (!(grant instanceof Grant)) throw new Error("a budget of a route refuses nothing");
    await eventually(async () => (await stateOf(ledger, rules))["cost"], [LIMITS.cost, 50]);
    grant.release();
    await eventually(async () => (await stateOf(ledger, rules))["cost"], [LIMITS.cost, 0]);
  });

  it("does not wait for a call that cannot: it grants or refuses at once", async () => {
    const rules = createRules();
    const [ledger] = ledgers as [Ledger];
    const before = ledger.takeNow(needsOf(ledger, rules, { cost: 1 }));
    if (before instanceof Grant) before.release();
    else expect(before.isChecked).toBe(false);
    const too = ledger.takeNow(needsOf(ledger, rules, { cost: LIMITS.cost + 1 }));
    expect(too).toBeInstanceOf(Refusal);
    await eventually(() => stateOf(ledger, rules), NOTHING);
  });

  it("money is kept when the process ends, and forgotten with its owner", async () => {
    const [kept, forgotten] = [createRules(), createRules()];
    const [ledger] = ledgers as [Ledger];
    for (const rules of [kept, forgotten]) {
      const grant = await ledger.take(needsOf(ledger, rules, { cost: 400 }));
      if (grant instanceof Grant) grant.settle(chargesOf(ledger, rules, { cost: 300 }));
    }
    const running = await ledger.take(needsOf(ledger, forgotten, { cost: 100 }));
    const charges = chargesOf(ledger, forgotten, { cost: 100 });
    ledger.forget(forgotten.cost.owner);
    if (running instanceof Grant) running.settle(charges);
    await ledger.stop();
    const next = await source.open();
    ledgers[0] = next;
    await eventually(async () => (await stateOf(next, kept))["cost"], [300, 0]);
    // Amounts of PostgreSQL are deleted a moment later; a ledger that has read them before keeps what it read.
    const isKnown = async () => (await next.idleOwners()).some(({ key }) => key === forgotten.cost.owner.key);
    await eventually(isKnown, false);
    expect((await stateOf(next, forgotten))["cost"]).toEqual([0, 0]);
  });
});
