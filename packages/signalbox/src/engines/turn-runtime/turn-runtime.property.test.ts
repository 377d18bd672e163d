/** Random turns: nothing leaves before it is durable, and nothing leaves that was rolled back (invariants 2 to 5 of the README). */
import fc from "fast-check";
import { expect, it } from "vitest";
import { TestDatabase } from "./database-fixture.ts";
import { TurnRuntime } from "./turn-runtime.ts";

type Step = "write" | "send" | "await" | "wait" | "undo" | "throw";

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.constantFrom<Step>("write", "write", "send", "send", "await", "wait", "wait", "undo", "throw"),
  { maxLength: 8 },
);
const scenarios = fc.record({
  isInterleaving: fc.boolean(),
  /** The sync that fails, counted from 1; beyond the number of syncs in most runs. */
  failingSync: fc.integer({ min: 1, max: 12 }),
  turns: fc.array(steps, { minLength: 1, maxLength: 12 }),
});

const nextIteration = () => new Promise<void>((resolve) => setImmediate(resolve));

interface Sent {
  readonly order: number;
  /** Every note that the turn could read when it sent the output, of whichever turn. */
  readonly seen: readonly string[];
}

class Run {
  readonly database = new TestDatabase();
  readonly #runtime: TurnRuntime<null>;
  /** Writes of turns that have not been undone, by turn. */
  readonly written = new Map<number, string[]>();
  readonly released: Sent[] = [];
  readonly problems: string[] = [];
  readonly #failingSync: number;
  readonly #isInterleaving: boolean;
  #sent = 0;
  #hasSyncFailed = false;

  constructor(isInterleaving: boolean, failingSync: number) {
    this.#failingSync = failingSync;
    this.#isInterleaving = isInterleaving;
    this.#runtime = new TurnRuntime<null>({
      owner: {},
      key: "test",
      maxWaiting: 100,
      timeoutMs: 60_000,
      isInterleaving,
      createOverloadError: () => new Error("overloaded"),
      createTimeoutError: () => new Error("timed out"),
      onTurnEnd: () => undefined,
      onIdle: () => undefined,
      onCommitFailure: (error) => this.problems.push(`commit failed: ${error.message}`),
    });
  }

  async play(turns: readonly Step[][]): Promise<PromiseSettledResult<unknown>[]> {
    this.#runtime.open(this.database, () => this.#sync());
    await this.#runtime.start(null, { kind: "start", label: "", isInternal: true, body: () => undefined });
    const results = await Promise.allSettled(
      turns.map((turn, id) =>
        this.#runtime.run<readonly string[]>({
          kind: "turn",
          label: String(id),
          body: () => this.#playTurn(id, turn),
          onOutcome: (_error, seen = []) => this.#checkDurable(`the outcome of ${id}`, seen),
        }),
      ),
    );
    await this.#runtime.whenQuiet();
    this.#runtime.finish(() => new Error("gone"));
    return results;
  }

  async #sync(): Promise<void> {
    if (this.database.syncs + 1 === this.#failingSync) this.database.syncFailure = new Error("broken disk");
    try {
      await this.database.sync();
    } catch (error) {
      this.#hasSyncFailed = true;
      throw error;
    }
  }

  /** Returns what the turn could read at its end. */
  async #playTurn(id: number, turn: readonly Step[]): Promise<readonly string[]> {
    const kept: string[] = [];
    this.written.set(id, kept);
    /** Writes of `kept` that an undo cannot take back, because they are in an earlier segment. */
    let settled = 0;
    for (const [i, step] of turn.entries()) {
      if (step === "write") {
        this.#runtime.transactions.open();
        this.database.insert(`${id}.${i}`);
        kept.push(`${id}.${i}`);
      } else if (step === "send") this.#send();
      else if (step === "await") await Promise.resolve();
      else if (step === "wait") {
        await nextIteration();
        settled = kept.length;
      } else if (step === "undo") {
        this.#runtime.transactions.undo();
        kept.length = settled;
      } else {
        kept.length = settled;
        throw new Error("on purpose");
      }
    }
    return this.database.notes();
  }

  #send(): void {
    const sent = { order: this.#sent++, seen: this.database.notes() };
    this.#runtime.outputs.sendWithSegment({
      release: () => {
        if (this.#hasSyncFailed) this.problems.push(`output ${sent.order} left after a failed sync`);
        this.#checkDurable(`output ${sent.order}`, sent.seen);
        this.released.push(sent);
      },
      drop: () => undefined,
    });
  }

  #checkDurable(output: string, seen: readonly string[]): void {
    // Interleaving turns can read uncommitted writes of each other, which a rollback may have removed since (invariant 2).
    const stored = this.#isInterleaving ? this.database.notes() : seen;
    const early = seen.filter((note) => stored.includes(note) && !this.database.durable.has(note));
    if (early.length > 0) this.problems.push(`${output} left before ${early.join()} was durable`);
  }
}

it("outputs leave in order, when everything that their turns wrote and read is durable, and not after a failed sync", async () => {
  await fc.assert(
    fc.asyncProperty(scenarios, async ({ isInterleaving, failingSync, turns }) => {
      const run = new Run(isInterleaving, failingSync);
      await run.play(turns);
      expect(run.problems).toEqual([]);
      const orders = run.released.map(({ order }) => order);
      expect(orders).toEqual(orders.toSorted((a, b) => a - b));
      run.database.close();
    }),
    { numRuns: 150 },
  );
});

it("a turn that succeeds is durable; a turn that throws keeps its earlier segments, and rolled-back writes send nothing", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { minLength: 1, maxLength: 12 }), async (turns) => {
      const run = new Run(false, Number.POSITIVE_INFINITY);
      const results = await run.play(turns);
      expect(results.map(({ status }) => status === "rejected")).toEqual(
        turns.map((turn) => turn.includes("throw")),
      );
      const kept = [...run.written.values()].flat();
      expect(run.database.notes().toSorted()).toEqual(kept.toSorted());
      for (const { seen } of run.released) for (const note of seen) expect(kept).toContain(note);
      results.forEach(({ status }, id) => {
        if (status === "fulfilled") {
          for (const note of run.written.get(id) ?? []) expect(run.database.durable).toContain(note);
        }
      });
      run.database.close();
    }),
    { numRuns: 100 },
  );
});
