/**
 * What clients know of one instance of the ledger agent, and the comparison with the instance's own audit.
 *
 * Invariants after any crash:
 * 1. Every effect reported to a client (a response, a broadcast, a state frame) is there, complete.
 * 2. No effect is partial, except one that waits between its two rows and whose end was not reported.
 * 3. The state matches the rows: it counts the effects and names the last one. No client saw a later state.
 * 4. Work exists exactly for the effects that requested it: done or waiting, never lost, waiting at most once.
 * 5. Queued work was done in the order in which it was queued.
 * 6. Nothing exists that was not requested, and nothing that existed before is gone.
 */
import type { LedgerAudit } from "../../fixtures/ledger-agent.ts";

export class LedgerModel {
  readonly name: string;
  /** Gets little work, with pauses, so that the instance leaves memory and is loaded again. */
  readonly isPausing: boolean;
  readonly #sent = new Set<string>();
  readonly #reported = new Set<string>();
  #highestCountSeen = 0;

  // As of the last audit.
  #lastEffect = 0;
  #doneCount = 0;
  /** Effects with work that is not done yet, in order. */
  #waitingForQueue: string[] = [];
  #waitingForSchedule = new Set<string>();
  #lastWork = 0;
  /** Effects with only their first row; a crash interrupted them, and they stay partial. */
  readonly #halves = new Set<string>();

  constructor(name: string, isPausing = false) {
    this.name = name;
    this.isPausing = isPausing;
  }

  get reportedCount(): number {
    return this.#reported.size;
  }

  sending(id: string): void {
    this.#sent.add(id);
  }

  /** A client learned of the effect. Effects found by an earlier audit are known already. */
  reported(id: string): void {
    if (this.#sent.has(id)) this.#reported.add(id);
  }

  sawState({ count, last }: { readonly count: number; readonly last: string | null }): void {
    this.#highestCountSeen = Math.max(this.#highestCountSeen, count);
    if (last !== null) this.reported(last);
  }

  /** Where the next audit continues: the last known effect and work. */
  get known(): readonly [number, number] {
    return [this.#lastEffect, this.#lastWork];
  }

  /** Throws an error that lists every violation. */
  check(audit: LedgerAudit): void {
    const problems: string[] = [];
    const report = (text: string) => void problems.push(`${this.name}: ${text}`);
    const right = new Map<string, string>();
    const left = new Set<string>(this.#halves);
    for (const { id, half, kind } of audit.effects) {
      if (!this.#sent.has(id)) report(`${id} is there, but no client requested it`);
      if (half === "left") left.add(id);
      else {
        if (!left.delete(id)) report(`${id} has its second half without the first`);
        right.set(id, kind);
      }
    }
    this.#halves.clear();
    for (const id of left) {
      if (!id.startsWith("recordInSteps")) report(`${id} is half there`);
      else this.#halves.add(id);
    }
    for (const id of this.#reported) {
      if (!right.has(id)) report(`${id} is lost, although a client was informed`);
    }
    if (audit.doneCount !== this.#doneCount + right.size)
      report(
        `${audit.doneCount} effects are there, ${this.#doneCount} were before and ${right.size} came since`,
      );
    const last = [...right.keys()].at(-1);
    if (audit.state.count !== audit.doneCount)
      report(`the state counts ${audit.state.count} effects, but ${audit.doneCount} are there`);
    if (last !== undefined && audit.state.last !== last)
      report(`the state names ${audit.state.last} as the last effect, the rows ${last}`);
    if (audit.state.count < this.#highestCountSeen)
      report(`a client saw state ${this.#highestCountSeen}, but it is ${audit.state.count}`);
    this.#checkWork(audit, right, report);
    if (problems.length > 0) throw new Error(problems.slice(0, 20).join("\n"));

    this.#lastEffect = audit.effects.at(-1)?.seq ?? this.#lastEffect;
    this.#doneCount = audit.doneCount;
    this.#sent.clear();
    this.#reported.clear();
  }

  #checkWork(audit: LedgerAudit, effects: ReadonlyMap<string, string>, report: (text: string) => void): void {
    for (const [id, kind] of effects) {
      if (kind === "recordAndQueue") this.#waitingForQueue.push(id);
      if (kind === "recordAndSchedule") this.#waitingForSchedule.add(id);
    }
    const doneFromQueue = audit.work.filter((work) => work.origin === "queue").map((work) => work.id);
    const expected = [...doneFromQueue, ...audit.queued];
    if (expected.join() !== this.#waitingForQueue.join())
      report(
        `queued work should be done or wait in this order: ${this.#waitingForQueue.join()}; but it is ${expected.join()}`,
      );
    this.#waitingForQueue = [...audit.queued];
    for (const work of audit.work) {
      if (work.origin === "schedule" && !this.#waitingForSchedule.delete(work.id))
        report(`the schedule of ${work.id} fired, but no client requested it`);
    }
    if ([...audit.scheduled].sort().join() !== [...this.#waitingForSchedule].sort().join())
      report(
        `schedules should be ${[...this.#waitingForSchedule].sort().join()}; but are ${[...audit.scheduled].sort().join()}`,
      );
    this.#lastWork = audit.work.at(-1)?.seq ?? this.#lastWork;
  }
}

/** The number of instances under constant load and of instances with pauses. */
export function newLedgers(busy: number, pausing: number): LedgerModel[] {
  return [
    ...Array.from({ length: busy }, (_, i) => new LedgerModel(`busy-${i}`)),
    ...Array.from({ length: pausing }, (_, i) => new LedgerModel(`pausing-${i}`, true)),
  ];
}
