/** Other processes of this machine that serve at the same addresses, as `/metrics` and `/readyz` see them. */

export interface OwnReport {
  metrics(): Promise<string>;
  /** Why this process should get no requests at present. */
  problems(): readonly string[];
}

/**
 * `serving`: accepts connections. `leaving`: is being replaced, and answers on the connections that it has. `starting`: does not serve yet. `waiting`: has
 * ended, and is started again soon.
 */
export type ProcessState = "starting" | "serving" | "leaving" | "waiting";

export interface ProcessReadiness {
  readonly process: number;
  readonly state: ProcessState;
  /** Of a process that serves. */
  readonly problems: readonly string[];
}

export interface Siblings {
  /** What the others are told of this process. Called once, before the listeners open. */
  answerWith(own: OwnReport): void;
  /** The metrics of all processes, each series with the label `process`. A process that does not answer in time is named, and not waited for. */
  metrics(): Promise<string>;
  readiness(): Promise<readonly ProcessReadiness[]>;
}
