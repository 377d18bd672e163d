/**
 * A fuzz target: something that strangers or callers can send bytes to, a generator of what they could send, and an oracle that knows what
 * must hold whatever is sent. Inputs are plain JSON (bytes as latin1 text), so that one that breaks something can be kept as a case.
 */
import type { Random } from "../../support/ledger/random.ts";

export interface FuzzTarget<Input = unknown> {
  readonly name: string;
  /** One line for people. */
  readonly summary: string;
  /** Inputs of the short run that every run of the tests does: a few seconds. */
  readonly shortRun: number;
  /** Inputs that are tried at the same time. */
  readonly width: number;
  generate(random: Random): Input;
  open(): Promise<Arena<Input>>;
}

/** What is attacked, opened afresh for a run. */
export interface Arena<Input = unknown> {
  /** Rejects with what is wrong. */
  attempt(input: Input): Promise<void>;
  /** What must hold beyond the answers to one input: alive, nothing unexpected in the log, others unharmed. */
  check(): Promise<void>;
  close(): Promise<void>;
}

/** Keeps the type of the inputs between generator and oracle, and hides it from the runner. */
export function defineTarget<Input>(target: FuzzTarget<Input>): FuzzTarget {
  return target;
}
