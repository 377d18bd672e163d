/**
 * A fuzz target: an interface that accepts bytes of callers, a generator of inputs, and an oracle with the rules that
 * hold for every input. Inputs are plain JSON (bytes as latin1 text), so that a failing input can be kept as a case.
 */
import type { Random } from "../../support/ledger/random.ts";

export interface FuzzTarget<Input = unknown> {
  readonly name: string;
  /** One line for people. */
  readonly summary: string;
  /** Number of inputs in the short run of the test suite, which takes a few seconds. */
  readonly shortRun: number;
  /** Number of concurrent inputs. */
  readonly width: number;
  generate(random: Random): Input;
  open(): Promise<Arena<Input>>;
}

/** The target of the attack, opened for each run. */
export interface Arena<Input = unknown> {
  /** Rejects with a description of the failure. */
  attempt(input: Input): Promise<void>;
  /**
   * Checks beyond the responses to one input: the server is alive, the log has nothing unexpected, others are
   * unharmed.
   */
  check(): Promise<void>;
  close(): Promise<void>;
}

/** Keeps the input type between generator and oracle and hides it from the runner. */
export function defineTarget<Input>(target: FuzzTarget<Input>): FuzzTarget {
  return target;
}
