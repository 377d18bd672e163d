/**
 * Any history of calls, kills, restarts and changed limits over several nodes: what calls have spent and may still spend never exceeds the limit
 * at the time of a call, and nothing that was spent is lost.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Gateway } from "../settings/gateway.ts";
import {
  aboutAnHour,
  demandOf,
  gatewayWith,
  openSharedCluster,
  request,
  reserve,
  rowOf,
  type SharedCluster,
  type SharedNode,
  usedOf,
  withRules,
} from "./shared-limits-fixture.ts";

let cluster: SharedCluster;
beforeAll(async () => {
  cluster = await openSharedCluster();
});
afterAll(async () => {
  expect(cluster.errors).toEqual([]);
  await cluster.close();
});

const NODES = 3;

type Action =
  | { readonly kind: "call"; readonly node: number; readonly cents: number; readonly share: number }
  | { readonly kind: "settle"; readonly call: number }
  | { readonly kind: "kill" | "declareDead"; readonly node: number };

/** Actions of a round run at the same time; the limit changes between rounds. */
interface Round {
  readonly cents: number;
  readonly actions: readonly Action[];
}

const node = fc.nat(NODES - 1);
const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant("call" as const),
      node,
      cents: fc.integer({ min: 0, max: 40 }),
      share: fc.integer({ min: 0, max: 100 }),
    }),
  },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("settle" as const), call: fc.nat(200) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom("kill" as const, "declareDead" as const), node }),
  },
);
const rounds: fc.Arbitrary<Round[]> = fc.array(
  fc.record({
    cents: fc.integer({ min: 50, max: 300 }),
    actions: fc.array(action, { minLength: 5, maxLength: 30 }),
  }),
  { minLength: 2, maxLength: 6 },
);

interface Running {
  readonly node: number;
  readonly cents: number;
  readonly share: number;
  readonly settle: (dollars: number) => void;
}

/** Plays a history; amounts are cents. */
class Play {
  readonly #nodes: SharedNode[];
  readonly #base: Gateway;
  readonly #dying = new Set<SharedNode>();
  #running: Running[] = [];
  /** By calls that ended. */
  spent = 0;
  /** Held by calls of nodes that were killed: the provider may bill it. */
  lost = 0;

  constructor(nodes: SharedNode[], base: Gateway) {
    this.#nodes = nodes;
    this.#base = base;
  }

  async round({ cents, actions }: Round): Promise<void> {
    const gateway = withRules(this.#base, [{ id: "r", limitType: "cost", limit: cents / 100, window: null }]);
    await Promise.all(actions.map((one) => this.#act(one, gateway, cents)));
  }

  async #act(one: Action, gateway: Gateway, limit: number): Promise<void> {
    if (one.kind === "call") await this.#call(one, gateway, limit);
    else if (one.kind === "settle") this.#settle(this.#running[one.call % this.#running.length]);
    else {
      const gone = this.#nodes[one.node] as SharedNode;
      if (this.#dying.has(gone)) return;
      if (one.kind === "declareDead") await gone.declareDead();
      else {
        this.#dying.add(gone);
        this.#nodes[one.node] = await cluster.openNode();
        const doomed = this.#running.filter((running) => running.node === one.node);
        this.#running = this.#running.filter((running) => running.node !== one.node);
        this.lost += sum(doomed.map(({ cents }) => cents));
        await gone.kill();
      }
    }
  }

  async #call(
    { node: index, cents, share }: Extract<Action, { kind: "call" }>,
    gateway: Gateway,
    limit: number,
  ): Promise<void> {
    const caller = this.#nodes[index] as SharedNode;
    const settle = await Promise.race([reserve(caller, gateway, demandOf(cents / 100)), gone(caller)]);
    if (typeof settle !== "function") return;
    if (this.#nodes[index] === caller) this.#running.push({ node: index, cents, share, settle });
    else this.lost += cents;
    if (cents > 0)
      expect(this.spent + this.lost + sum(this.#running.map((running) => running.cents))).toBeLessThanOrEqual(
        limit,
      );
  }

  #settle(running: Running | undefined): void {
    if (running === undefined) return;
    this.#running.splice(this.#running.indexOf(running), 1);
    const cents = Math.floor((running.cents * running.share) / 100);
    this.spent += cents;
    running.settle(cents / 100);
  }

  settleAll(): void {
    while (this.#running.length > 0) this.#settle(this.#running[0]);
  }

  async stop(): Promise<void> {
    for (const one of this.#nodes) await one.stop();
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

/** Calls of a killed node never end. */
async function gone(caller: SharedNode): Promise<null> {
  await caller.whenKilled;
  return null;
}

it("money: never more than the limit, and nothing is lost", async () => {
  await fc.assert(
    fc.asyncProperty(rounds, async (history) => {
      const nodes: SharedNode[] = [];
      for (let i = 0; i < NODES; i++) nodes.push(await cluster.openNode());
      const base = gatewayWith({});
      const play = new Play(nodes, base);
      for (const round of history) await play.round(round);
      play.settleAll();
      await play.stop();
      await cluster.settleDead();
      const row = await rowOf(cluster.database, base, "cost r");
      expect(usedOf(row) / 10_000).toBeGreaterThanOrEqual(play.spent);
      expect(row ?? { held: 0, spare: 0 }).toMatchObject({ held: 0, spare: 0 });
    }),
    { numRuns: Number(process.env["LIMIT_RUNS"] ?? 12), endOnFailure: true },
  );
});

it("requests: exactly the limit passes without kills, never more with them", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 150 }),
      fc.constantFrom("fixed", "sliding"),
      fc.array(node, { minLength: 160, maxLength: 200 }),
      fc.option(fc.nat(150), { nil: null }),
      async (limit, technique, callers, killAfter) => {
        const nodes: SharedNode[] = [];
        for (let i = 0; i < NODES; i++) nodes.push(await cluster.openNode());
        const gateway = gatewayWith({
          rate_limiting_limit: limit,
          rate_limiting_interval: aboutAnHour(),
          rate_limiting_technique: technique,
        });
        let passed = 0;
        const call = async (index: number) => {
          const caller = nodes[index] as SharedNode;
          const refusal = await Promise.race([request(caller, gateway), gone(caller).then(() => "killed")]);
          if (refusal === null) passed += 1;
          if (passed === killAfter) await caller.kill();
        };
        await Promise.all(callers.map(call));
        for (const one of nodes) await one.stop();
        if (killAfter === null || killAfter > limit) expect(passed).toBe(Math.min(limit, callers.length));
        else expect(passed).toBeLessThanOrEqual(limit);
      },
    ),
    { numRuns: Number(process.env["LIMIT_RUNS"] ?? 15), endOnFailure: true },
  );
});
