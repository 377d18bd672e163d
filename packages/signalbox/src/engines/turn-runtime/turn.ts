/**
 * One event of an instance, from waiting in the mailbox to its end.
 *
 *   waiting → running → done | failed | cut
 *
 * `running` begins on the stack of the mailbox; once its function has returned a promise the turn is off the stack and goes on in
 * pieces. `cut` is a turn that outlived its limit: its caller has been told, and what its code still tries to write is refused.
 */
export type TurnKind =
  | "start"
  | "request"
  | "connect"
  | "message"
  | "close"
  | "rpc"
  | "state"
  | "delivery"
  | "queue"
  | "schedule"
  | "hook"
  | "manage"
  /** Management reads something: no work of the instance's own, so it counts as no activity. */
  | "look";

export type TurnPhase = "waiting" | "running" | "done" | "failed" | "cut";

/** What a caller asks of the mailbox. */
export interface TurnSpec<T> {
  readonly kind: TurnKind;
  readonly label: string;
  readonly body: () => T | Promise<T>;
  /** Instances that wait for this turn. */
  readonly callers?: readonly string[];
  readonly afterFailure?: (error: unknown) => void;
  /** Called with the outcome as it passes the gate, so that what it sends keeps its place among the instance's outputs. */
  readonly tell?: ((error: unknown, value: T | undefined) => void) | undefined;
  readonly isGated?: boolean;
}

/** The instance a turn belongs to, as code that runs in the turn may use it. */
export interface TurnOwner {
  readonly key: string;
  /** Resolves when everything written so far is durable. */
  passGate(): Promise<void>;
  /** Calls a method of another instance of the same account. */
  callAgent(target: { readonly agent: string; readonly name: string }, ...call: CallParts): Promise<unknown>;
}

/** A call of a method: `callers` are the keys of the instances that wait for it. */
export type CallParts = [method: string, args: readonly unknown[], callers: readonly string[]];

export class Turn<T = unknown> {
  readonly owner: TurnOwner;
  readonly kind: TurnKind;
  /** What it is about, for people: a method, a path, an id. */
  readonly label: string;
  /** Keys of the instance, and of those that wait for this turn to end; a call back into one of them would never return. */
  readonly chain: readonly string[];
  /** Null once it runs: a turn waits for its sync, and what its function alone knows of need not. */
  body: (() => T | Promise<T>) | null;
  /** Writes, in a transaction of their own, that record the failure of a turn that was rolled back. */
  readonly afterFailure: ((error: unknown) => void) | null;
  readonly tell: ((error: unknown, value: T | undefined) => void) | null;
  /** True when the outcome goes to the caller through the gate; false for the runtime's own work, which tells nobody. */
  readonly isGated: boolean;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
  phase: TurnPhase = "waiting";
  /** True while its function runs on the mailbox's stack: the mailbox ends the segment then, not a timer. */
  isOnStack = false;
  startedAt = 0;
  timer: NodeJS.Timeout | undefined;
  /** Why the turn cannot succeed any more, whatever its function returns: a commit between two awaits failed. */
  doom: Error | null = null;
  /** Hooks the turn started and has to wait for (`onStateChanged`). */
  followUps: Promise<unknown>[] | null = null;

  constructor(
    owner: TurnOwner,
    spec: TurnSpec<T>,
    chain: readonly string[],
    resolve: (value: T) => void,
    reject: (error: unknown) => void,
  ) {
    this.owner = owner;
    this.kind = spec.kind;
    this.label = spec.label;
    this.body = spec.body;
    this.afterFailure = spec.afterFailure ?? null;
    this.tell = spec.tell ?? null;
    this.isGated = spec.isGated ?? true;
    this.chain = chain;
    this.resolve = resolve;
    this.reject = reject;
  }
}
