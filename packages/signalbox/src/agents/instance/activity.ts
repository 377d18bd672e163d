/**
 * What instances are doing, for people who watch: a live tail for whoever listens, and the last few events of each instance in
 * memory. Costs next to nothing when nobody looks.
 */
export type ActivityType =
  | "start"
  | "hibernate"
  | "destroy"
  | "turn"
  | "turn:error"
  | "state"
  | "connect"
  | "disconnect"
  | "buried";

export interface ActivityEvent {
  readonly type: ActivityType;
  readonly agent: string;
  readonly name: string;
  /** ISO 8601. */
  readonly timestamp: string;
  readonly detail: Readonly<Record<string, string | number | boolean | null>>;
}

export type ActivityListener = (event: ActivityEvent) => void;

/** Events kept per instance in memory. */
const KEPT = 20;

interface Kept {
  readonly type: ActivityType;
  readonly at: number;
  readonly detail: ActivityEvent["detail"];
}

export class ActivityHub {
  readonly #listeners = new Map<string, Set<ActivityListener>>();

  /** Listens to one instance until the returned function is called. */
  listen(key: string, listener: ActivityListener): () => void {
    const listeners = this.#listeners.get(key) ?? new Set();
    listeners.add(listener);
    this.#listeners.set(key, listeners);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(key) === listeners) this.#listeners.delete(key);
    };
  }

  emit(key: string, event: () => ActivityEvent): void {
    if (this.#listeners.size === 0) return;
    const listeners = this.#listeners.get(key);
    if (listeners === undefined) return;
    const made = event();
    for (const listener of listeners) listener(made);
  }
}

/** The last events of one instance. */
export class Activity {
  readonly #hub: ActivityHub;
  readonly #agent: string;
  readonly #name: string;
  #kept: Kept[] = [];

  constructor(hub: ActivityHub, agent: string, name: string) {
    this.#hub = hub;
    this.#agent = agent;
    this.#name = name;
  }

  record(type: ActivityType, at: number, detail: ActivityEvent["detail"]): void {
    const kept = { type, at, detail };
    this.#kept.push(kept);
    if (this.#kept.length > 2 * KEPT) this.#kept = this.#kept.slice(-KEPT);
    this.#hub.emit(`${this.#agent}/${this.#name}`, () => this.#toEvent(kept));
  }

  /** Newest first. */
  recent(): ActivityEvent[] {
    return this.#kept
      .slice(-KEPT)
      .toReversed()
      .map((kept) => this.#toEvent(kept));
  }

  #toEvent({ type, at, detail }: Kept): ActivityEvent {
    return { type, agent: this.#agent, name: this.#name, timestamp: new Date(at).toISOString(), detail };
  }
}
