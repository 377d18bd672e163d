/**
 * What instances do, for people who watch: the last events of each instance in memory, and a live feed for listeners. Without listeners
 * an event costs a few assignments.
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

type Detail = Readonly<Record<string, string | number | boolean | null>>;

export interface ActivityEvent {
  readonly type: ActivityType;
  readonly agent: string;
  readonly name: string;
  /** ISO 8601. */
  readonly timestamp: string;
  readonly detail: Detail;
}

export type ActivityListener = (event: ActivityEvent) => void;

/** Events kept per instance in memory. */
const KEPT = 20;

/**
 * One event in the ring. Slots are reused: a busy instance has two events per turn, and a new object for each, kept for ten turns, is promoted
 * to the old generation and makes up much of the garbage collector's work.
 */
interface Slot {
  type: ActivityType;
  at: number;
  /** Of a `turn`. */
  kind: string;
  label: string;
  ms: number;
  /** Of a `state`. */
  bytes: number;
  source: string;
  /** Of every other event. */
  detail: Detail | null;
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

  /** Calls `createEvent` only if the instance has listeners. */
  emit(key: string, createEvent: () => ActivityEvent): void {
    const listeners = this.#listeners.get(key);
    if (listeners === undefined) return;
    const event = createEvent();
    for (const listener of listeners) listener(event);
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
  /** Index of the oldest event when all slots are in use. */
  #oldest = 0;

  /** `key` identifies the instance for listeners. */
  constructor(hub: ActivityHub, key: string, { agent, name }: InstanceRef) {
    this.#hub = hub;
    this.#key = key;
    this.#agent = agent;
    this.#name = name;
  }

  record(type: Exclude<ActivityType, "turn" | "state">, at: number, detail: Detail): void {
    const slot = this.#nextSlot(type, at);
    slot.detail = detail;
    this.#emit(slot);
  }

  /** `error` is the message of a failed turn, else null; `failureId` is that of the stored failure, if it is one of the agent's code. */
  recordTurn(
    at: number,
    kind: string,
    label: string,
    ms: number,
    error: string | null,
    failureId?: string,
  ): void {
    if (error !== null) {
      const stored: Record<string, string> = failureId === undefined ? {} : { failure_id: failureId };
      this.record("turn:error", at, { ...turnDetail(kind, label, ms), error, ...stored });
      return;
    }
    const slot = this.#nextSlot("turn", at);
    slot.kind = kind;
    slot.label = label;
    slot.ms = ms;
    this.#emit(slot);
  }

  /** `source` is the id of a connection, or "server". */
  recordState(at: number, bytes: number, source: string): void {
    const slot = this.#nextSlot("state", at);
    slot.bytes = bytes;
    slot.source = source;
    this.#emit(slot);
  }

  /** Newest first. */
  recent(): ActivityEvent[] {
    const slots = [...this.#slots.slice(this.#oldest), ...this.#slots.slice(0, this.#oldest)];
    return slots.toReversed().map((slot) => this.#toEvent(slot));
  }

  #nextSlot(type: ActivityType, at: number): Slot {
    const oldest = this.#slots[this.#oldest];
    if (this.#slots.length < KEPT || oldest === undefined) {
      const slot = { type, at, kind: "", label: "", ms: 0, bytes: 0, source: "", detail: null };
      this.#slots.push(slot);
      return slot;
    }
    this.#oldest = (this.#oldest + 1) % KEPT;
    oldest.type = type;
    oldest.at = at;
    oldest.detail = null;
    return oldest;
  }

  #emit(slot: Slot): void {
    if (this.#hub.hasListeners) this.#hub.emit(this.#key, () => this.#toEvent(slot));
  }

  #toEvent(slot: Slot): ActivityEvent {
    const timestamp = new Date(slot.at).toISOString();
    return { type: slot.type, agent: this.#agent, name: this.#name, timestamp, detail: toDetail(slot) };
  }
}

function toDetail({ type, kind, label, ms, bytes, source, detail }: Slot): Detail {
  if (type === "turn") return turnDetail(kind, label, ms);
  if (type === "state") return { bytes, source };
  return detail ?? {};
}

function turnDetail(kind: string, label: string, ms: number): { kind: string; label: string; ms: number } {
  return { kind, label, ms: Math.round(ms * 100) / 100 };
}
