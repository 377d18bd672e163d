/**
 * What instances are doing, for people who watch: a live tail for whoever listens, and the last few events of each instance in
 * memory. Costs next to nothing when nobody looks.
 */
import type { InstanceRef } from "./instance-ref.ts";

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

/**
 * A place for one event, used again and again: a busy instance has two events with each of its turns, and an object for each, kept this
 * long, would be most of what the garbage collector has to carry over.
 */
interface Slot {
  type: ActivityType;
  at: number;
  /** A turn's kind, or who has set the state. */
  word: string;
  /** A turn's label. */
  label: string;
  /** A turn's milliseconds, or a state's bytes. */
  amount: number;
  /** Of all other events. */
  detail: ActivityEvent["detail"] | null;
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
    const listeners = this.#listeners.get(key);
    if (listeners === undefined) return;
    const made = event();
    for (const listener of listeners) listener(made);
  }

  get hasListeners(): boolean {
    return this.#listeners.size > 0;
  }
}

/** The last events of one instance. */
export class Activity {
  readonly #hub: ActivityHub;
  readonly #key: string;
  readonly #agent: string;
  readonly #name: string;
  readonly #slots: Slot[] = [];
  /** The slot of the oldest event, once all are in use. */
  #next = 0;

  /** `key` is what listeners name the instance by. */
  constructor(hub: ActivityHub, key: string, { agent, name }: InstanceRef) {
    this.#hub = hub;
    this.#key = key;
    this.#agent = agent;
    this.#name = name;
  }

  record(
    type: Exclude<ActivityType, "turn" | "state">,
    at: number,
    detail: NonNullable<Slot["detail"]>,
  ): void {
    this.#put(type, at, "", "", 0, detail);
  }

  /** `error` is the message of one that failed. */
  recordTurn(at: number, kind: string, label: string, ms: number, error: string | null): void {
    if (error === null) this.#put("turn", at, kind, label, ms, null);
    else this.record("turn:error", at, { ...turnDetail(kind, label, ms), error });
  }

  recordState(at: number, bytes: number, source: string): void {
    this.#put("state", at, source, "", bytes, null);
  }

  /** Newest first. */
  recent(): ActivityEvent[] {
    const slots = [...this.#slots.slice(this.#next), ...this.#slots.slice(0, this.#next)];
    return slots.toReversed().map((slot) => this.#toEvent(slot));
  }

  #put(
    type: ActivityType,
    at: number,
    word: string,
    label: string,
    amount: number,
    detail: Slot["detail"],
  ): void {
    let slot = this.#slots[this.#next];
    if (this.#slots.length < KEPT || slot === undefined) {
      slot = { type, at, word, label, amount, detail };
      this.#slots.push(slot);
    } else {
      this.#next = (this.#next + 1) % KEPT;
      slot.type = type;
      slot.at = at;
      slot.word = word;
      slot.label = label;
      slot.amount = amount;
      slot.detail = detail;
    }
    if (this.#hub.hasListeners) this.#tell(slot);
  }

  #tell(slot: Slot): void {
    this.#hub.emit(this.#key, () => this.#toEvent(slot));
  }

  #toEvent(slot: Slot): ActivityEvent {
    const timestamp = new Date(slot.at).toISOString();
    return { type: slot.type, agent: this.#agent, name: this.#name, timestamp, detail: detailOf(slot) };
  }
}

function detailOf({ type, word, label, amount, detail }: Slot): ActivityEvent["detail"] {
  if (detail !== null) return detail;
  return type === "turn" ? turnDetail(word, label, amount) : { bytes: amount, source: word };
}

function turnDetail(kind: string, label: string, ms: number): { kind: string; label: string; ms: number } {
  return { kind, label, ms: Math.round(ms * 100) / 100 };
}
