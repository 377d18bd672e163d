/**
 * The steps of a call, and the preparation of each attempt: which step is sent next, and with which key.
 *
 *   new ── the step is admitted ──► admitted ── the attempt is counted ──► counted ── a key is picked, its circuit lets the call through ──► sent
 *                                                                                └─ the circuit is open, and there is another step ──► passed over
 *
 * Invariants:
 * 1. In this order: a call that its limits refuse uses up neither the rate of a key nor the probe of a circuit.
 * 2. After a delay the preparation goes on where it was. Nothing is taken, counted or probed twice for one attempt.
 * 3. Every step is admitted, and so has reserved what it may use, before an attempt of it is sent.
 * 4. An attempt beside a running one keeps the reservation of both only if it is sent.
 */
import { SignalboxError } from "@signalbox/protocol";
import { type Admission, Delay } from "../step/delay.ts";
import type { PickedKey } from "../step/key-pool.ts";
import type { Step } from "../step/step.ts";
import { type Circuits, targetOf } from "../reliability/circuits.ts";
import type { CallStart } from "./call-start.ts";

/** An attempt that may be sent. */
export interface PreparedAttempt {
  readonly step: Step;
  readonly index: number;
  readonly key: PickedKey | null;
}

type Stage =
  | { readonly kind: "new" | "admitted" | "counted" }
  /** The key stays picked: if there is no other step, the attempt is sent with it. */
  | { readonly kind: "passed-over"; readonly key: PickedKey | null };

const NEW: Stage = { kind: "new" };
const ADMITTED: Stage = { kind: "admitted" };
const COUNTED: Stage = { kind: "counted" };

export class CallSteps {
  readonly #start: Pick<CallStart, "steps" | "moreSteps" | "account" | "gateway">;
  readonly #circuits: Pick<Circuits, "isEmpty" | "admits">;
  #steps: readonly Step[];
  #index = 0;
  #attempts = 0;
  #stage: Stage = NEW;
  /** An attempt of the call was prepared. */
  #hasSent = false;

  constructor(
    start: Pick<CallStart, "steps" | "moreSteps" | "account" | "gateway">,
    circuits: Pick<Circuits, "isEmpty" | "admits">,
  ) {
    this.#start = start;
    this.#circuits = circuits;
    this.#steps = start.steps;
  }

  get present(): Step {
    const step = this.#steps[this.#index];
    if (step === undefined) throw new Error("a call has at least one step");
    return step;
  }

  get index(): number {
    return this.#index;
  }

  /** Attempts of the present step. */
  get attempts(): number {
    return this.#attempts;
  }

  /** Steps that are known so far. */
  get count(): number {
    return this.#steps.length;
  }

  get hasOther(): boolean {
    return this.#index + 1 < this.#steps.length || this.#start.moreSteps?.mayHaveNext === true;
  }

  /** The attempt of this step has answered, or is the last one. */
  endAt(index: number): void {
    this.#index = index;
  }

  /** False if there is no other step; a delay if a route decides later. */
  next(): boolean | Delay {
    if (this.#index + 1 >= this.#steps.length) {
      const step = this.#start.moreSteps?.next() ?? null;
      if (step === null) return false;
      if (step instanceof Delay) return step;
      this.#steps = [...this.#steps, step];
    }
    this.#index += 1;
    this.#attempts = 0;
    this.#stage = NEW;
    return true;
  }

  /** The next attempt of the present step, or of the first one behind it that is not passed over; else why the step may not be sent. */
  prepare(): PreparedAttempt | Exclude<Admission, null> {
    for (;;) {
      const step = this.present;
      const refusal = this.#admit(step);
      if (refusal !== null) return refusal;
      let key: PickedKey | null;
      if (this.#stage.kind === "passed-over") key = this.#stage.key;
      else {
        const picked = step.keys?.pick(step.upstream) ?? null;
        if (picked instanceof Delay || picked instanceof SignalboxError) return picked;
        key = picked;
        if (this.#attempts > 0 || this.#isLetThrough(step, key) || !this.hasOther)
          return this.#prepared(step, key);
        this.#stage = { kind: "passed-over", key };
      }
      const next = this.next();
      if (next instanceof Delay) return next;
      if (!next) return this.#prepared(step, key);
    }
  }

  /** An attempt beside the one that runs, of the next step if there is one. Null, and nothing has changed, if it would have to wait or is refused. */
  prepareBeside(): PreparedAttempt | null {
    const [index, attempts] = [this.#index, this.#attempts];
    if (this.hasOther && this.next() instanceof Delay) return null;
    const takeBack = this.#start.account?.reserveBeside();
    const attempt = this.prepare();
    if (!(attempt instanceof Delay || attempt instanceof SignalboxError)) return attempt;
    takeBack?.();
    [this.#index, this.#attempts, this.#stage] = [index, attempts, NEW];
    return null;
  }

  #admit(step: Step): Admission {
    const { account } = this.#start;
    if (account === null) return null;
    if (this.#stage.kind === "new") {
      const refusal = this.#attempts > 0 ? null : account.admit(step, this.#index);
      if (refusal !== null) return refusal;
      this.#stage = ADMITTED;
    }
    if (this.#stage.kind === "admitted") {
      // The first attempt was counted when the call arrived.
      const refusal = this.#hasSent ? account.admitAttempt(step) : null;
      if (refusal !== null) return refusal;
      this.#stage = COUNTED;
    }
    return null;
  }

  /** A call that is let through a half-open circuit is its probe. */
  #isLetThrough(step: Step, key: PickedKey | null): boolean {
    return this.#circuits.isEmpty || this.#circuits.admits(targetOf(this.#start.gateway, step, key));
  }

  #prepared(step: Step, key: PickedKey | null): PreparedAttempt {
    this.#attempts += 1;
    this.#stage = NEW;
    this.#hasSent = true;
    this.#start.account?.attemptSent();
    return { step, index: this.#index, key };
  }
}
