/** `instance.subscribe()`: the history of an instance, and what follows until it ends. */

export interface WorkflowHistoryEvent {
  readonly instanceId: string;
  /** Counts up within the instance. */
  readonly eventId: number;
  readonly timestamp: number;
  readonly type: string;
  readonly [field: string]: unknown;
}

export interface SubscribeOptions {
  /** Only events of these types. */
  readonly filter?: readonly string[];
  /** The number of the last event that is known: those after it follow. */
  readonly cursor?: number;
}

export interface HistoryPage {
  readonly events: readonly WorkflowHistoryEvent[];
  /** Nothing follows these events. */
  readonly isOver: boolean;
}

/** Events after `cursor`; if there are none yet, resolves when there are, or with none after a while. */
export type ReadHistory = (cursor: number) => Promise<HistoryPage>;

export class WorkflowSubscription {
  readonly #read: ReadHistory;
  readonly #filter: ReadonlySet<string> | null;
  #cursor: number;
  #waiting: WorkflowHistoryEvent[] = [];
  #isOver = false;

  constructor(read: ReadHistory, { filter, cursor = 0 }: SubscribeOptions) {
    this.#read = read;
    this.#filter = filter === undefined ? null : new Set(filter);
    this.#cursor = cursor;
  }

  async next(): Promise<{ value: WorkflowHistoryEvent; done: false } | { value: undefined; done: true }> {
    for (;;) {
      const value = this.#waiting.shift();
      if (value !== undefined) return { value, done: false };
      if (this.#isOver) return { value: undefined, done: true };
      const { events, isOver } = await this.#read(this.#cursor);
      this.#cursor = events.at(-1)?.eventId ?? this.#cursor;
      this.#waiting = events.filter(({ type }) => this.#filter === null || this.#filter.has(type));
      this.#isOver ||= isOver;
    }
  }

  async return(): Promise<{ value: undefined; done: true }> {
    this[Symbol.dispose]();
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#waiting = [];
  }
}
