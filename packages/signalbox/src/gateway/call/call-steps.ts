/**
 * The steps of a call, and the preparation of each attempt: which step is sent next, and with which key.
 *
 *   admitted by its limits ──► a key is picked ──► the circuit lets the call through ──► sent
 *                                                      └─ is open, and there is another step ──► passed over
 *
 * Each stage may have to wait for PostgreSQL, if nodes share limits; the preparation is then a promise.
 *
 * Invariants:
 * 1. In this order: a call that its limits refuse uses up neither the rate of a key nor the probe of a circuit.
 * 2. A preparation runs once, from its beginning to its end. One that waits when the call ends takes nothing more.
 * 3. Every attempt that is sent was admitted, and so has reserved what it may use.
 * 4. An attempt beside a running one keeps the reservation of both only if it is sent. It never waits.
 */
import { SignalboxError } from "@signalbox/protocol";
import { type Circuits, targetOf } from "../reliability/circuits.ts";
import type { PickedKey } from "../step/key-pool.ts";
import type { Step } from "../step/step.ts";
import type { CallStart } from "./call-start.ts";

/** An attempt that may be sent. */
export interface PreparedAttempt {
  readonly step: Step;
  readonly index: number;
  readonly key: PickedKey | null;
}

/** Or why no attempt of the step may be sent. */
export type Prepared = PreparedAttempt | SignalboxError;

/** The call has ended, or the attempt would have to wait and cannot. */
const NOT_SENT = new SignalboxError("internal", { message: "The attempt is not sent" });

export class CallSteps {
  readonly #start: Pick<CallStart, "steps" | "moreSteps" | "account" | "gateway">;
  readonly #circuits: Pick<Circuits, "isEmpty" | "admits">;
  #steps: readonly Step[];
  #index = 0;
  #attempts = 0;
  /** A route was asked for the step behind the last known one, and decides later. */
  #coming: Promise<Step | null> | null = null;
  #isEnded = false;

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

  /** Attempts of the current step. */
  get attempts(): number {
    return this.#attempts;
  }

  /** Steps that are known so far. */
  get count(): number {
    return this.#steps.length;
  }

  get hasOther(): boolean {
    return (
      this.#index + 1 < this.#steps.length ||
      this.#coming !== null ||
      this.#start.moreSteps?.mayHaveNext === true
    );
  }

  /** The attempt of this step has answered, or is the last one. */
  endAt(index: number): void {
    this.#index = index;
  }

  /** The call has ended: no attempt is prepared any more. */
  end(): void {
    this.#isEnded = true;
  }

  /** False if there is no other step. */
  next(): boolean | Promise<boolean> {
    const found = this.#findNext();
    return found instanceof Promise ? found.then((late) => this.#goTo(late)) : this.#goTo(found);
  }

  #findNext(): Step | null | Promise<Step | null> {
    const found = this.#steps[this.#index + 1] ?? this.#coming ?? this.#start.moreSteps?.next() ?? null;
    // An attempt beside the running one does not wait for it; a later one must not ask the route again.
    if (found instanceof Promise) this.#coming = found;
    return found;
  }

  #goTo(step: Step | null): boolean {
    this.#coming = null;
    if (step === null) return false;
    if (this.#index + 1 >= this.#steps.length) this.#steps = [...this.#steps, step];
    this.#index += 1;
    this.#attempts = 0;
    return true;
  }

  /** The next attempt of the current step, or of the first one behind it that is not passed over. */
  prepare(): Prepared | Promise<Prepared> {
    return this.#prepare(false);
  }

  /** An attempt beside the one that runs, of the next step if there is one. Null, and nothing has changed, if it would have to wait or is refused. */
  prepareBeside(): PreparedAttempt | null {
    const [index, attempts] = [this.#index, this.#attempts];
    const found = this.hasOther ? this.#findNext() : null;
    if (found instanceof Promise) return null;
    this.#goTo(found);
    const undo = this.#start.account?.beside();
    const attempt = this.#prepare(true);
    if (!(attempt instanceof SignalboxError || attempt instanceof Promise)) return attempt;
    undo?.();
    [this.#index, this.#attempts] = [index, attempts];
    return null;
  }

  /** `isBeside`: never a promise. */
  #prepare(isBeside: boolean): Prepared | Promise<Prepared> {
    const { account } = this.#start;
    const admission = account === null ? null : account.admit(this.present, this.#index, isBeside);
    if (admission instanceof Promise)
      return this.#later(admission, (refusal) => refusal ?? this.#pickKey(isBeside));
    return admission ?? this.#pickKey(isBeside);
  }

  #pickKey(isBeside: boolean): Prepared | Promise<Prepared> {
    const { keys, upstream } = this.present;
    const picked = keys?.pick(upstream, isBeside) ?? null;
    if (picked instanceof Promise) return this.#later(picked, (key) => this.#probe(key, isBeside));
    return this.#probe(picked, isBeside);
  }

  #probe(key: PickedKey | SignalboxError | null, isBeside: boolean): Prepared | Promise<Prepared> {
    if (key instanceof SignalboxError) return key;
    const step = this.present;
    if (this.#attempts > 0 || this.#isLetThrough(step, key) || !this.hasOther)
      return this.#prepared(step, key);
    const found = this.#findNext();
    if (found instanceof Promise && isBeside) return NOT_SENT;
    // The key stays picked: if there is no other step, the attempt is sent with it.
    if (found instanceof Promise)
      return this.#later(found, (late) =>
        this.#goTo(late) ? this.#prepare(false) : this.#prepared(step, key),
      );
    return this.#goTo(found) ? this.#prepare(isBeside) : this.#prepared(step, key);
  }

  #later<Answer>(
    answer: Promise<Answer>,
    goOn: (answer: Answer) => Prepared | Promise<Prepared>,
  ): Promise<Prepared> {
    return answer.then((late) => (this.#isEnded ? NOT_SENT : goOn(late)));
  }

  /** A call that is let through a half-open circuit is its probe. */
  #isLetThrough(step: Step, key: PickedKey | null): boolean {
    return this.#circuits.isEmpty || this.#circuits.admits(targetOf(this.#start.gateway, step, key));
  }

  #prepared(step: Step, key: PickedKey | null): PreparedAttempt {
    this.#attempts += 1;
    this.#start.account?.attemptSent();
    return { step, index: this.#index, key };
  }
}
