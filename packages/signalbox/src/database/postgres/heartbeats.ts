/**
 * What the acknowledged heartbeats of this node have told: how fresh its knowledge of the database is, whether its clock agrees with that of
 * PostgreSQL, and whether its version can use the schema.
 *
 * Ages are measured from the time at which a heartbeat was *sent*, by the monotonic clock of this process: a pause of the process, or a slow
 * answer, makes a heartbeat older and never younger.
 */
import type { ClusterMember } from "../membership.ts";
import type { Beat } from "./node-table.ts";

/** A restart of PostgreSQL is shorter: a load balancer should not take all nodes away because of it. */
const MAX_SILENCE_MS = 2000;
/** Expiry times of tokens, sessions and schedules are compared with the clock of the node. */
const MAX_CLOCK_OFFSET_MS = 5000;

export class Heartbeats {
  /** The newest migration that this version knows. */
  readonly #schema: number;
  #lastAt = -Infinity;
  #lastRead = { at: -Infinity, problem: "" };
  #count = 0;
  #members: readonly ClusterMember[] = [];
  #clockOffsetMs = 0;
  #neededSchema = 0;

  constructor(schema: number) {
    this.#schema = schema;
  }

  /** When the last acknowledged heartbeat was sent, by the monotonic clock. */
  get lastAt(): number {
    return this.#lastAt;
  }

  /** Acknowledged heartbeats of the current incarnation. */
  get count(): number {
    return this.#count;
  }

  /** Time since the last acknowledged heartbeat was sent. */
  get ageMs(): number {
    return performance.now() - this.#lastAt;
  }

  /** The living nodes as of the last acknowledged heartbeat. */
  get members(): readonly ClusterMember[] {
    return this.#members;
  }

  /** True if what this node has in memory may be older than `maxMs`, or if its version cannot use the schema. */
  isStale(maxMs: number): boolean {
    return performance.now() - Math.max(this.#lastAt, this.#lastRead.at) > maxMs || !this.isSchemaUnderstood;
  }

  /** How far the clock of this machine is ahead of PostgreSQL's (negative: behind), without what the round trip may explain. */
  get clockOffsetMs(): number {
    return this.#clockOffsetMs;
  }

  /** False after a migration that this version cannot serve. */
  get isSchemaUnderstood(): boolean {
    return this.#neededSchema <= this.#schema;
  }

  record(beat: Omit<Beat, "settingsVersion">, sent: { readonly at: number; readonly time: number }): void {
    this.#lastAt = sent.at;
    this.#count = beat.count;
    this.#members = beat.members;
    this.recordSchema(beat.neededSchema);
    this.#clockOffsetMs = offsetOf(beat.now, sent.time, sent.time + (performance.now() - sent.at));
  }

  recordSchema(needed: number): void {
    this.#neededSchema = needed;
  }

  /** The node has joined with a new incarnation, whose row is its first sign of life. */
  recordJoin(sentAt: number): void {
    this.#lastAt = sentAt;
    this.#count = 0;
  }

  /** The server answers, but cannot store the heartbeat: what is in memory is up to date, and the node may be declared dead at any time. */
  recordRead(sentAt: number, problem: string): void {
    this.#lastRead = { at: sentAt, problem };
  }

  /** For operators, if the schema is not understood. */
  get schemaProblem(): string {
    return `the database has schema ${this.#neededSchema}, and this version knows up to ${this.#schema}: upgrade this node`;
  }

  /** Why this node should get no traffic, as text for operators; null if it should. */
  get problem(): string | null {
    if (!this.isSchemaUnderstood) return this.schemaProblem;
    if (this.ageMs > MAX_SILENCE_MS) {
      const { at, problem } = this.#lastRead;
      return performance.now() - at > MAX_SILENCE_MS ? "PostgreSQL cannot be reached" : problem;
    }
    const seconds = Math.round(this.#clockOffsetMs / 1000);
    if (Math.abs(this.#clockOffsetMs) > MAX_CLOCK_OFFSET_MS)
      return `the clock of this machine is ${Math.abs(seconds)} s ${seconds > 0 ? "ahead of" : "behind"} PostgreSQL's`;
    return null;
  }
}

/** The server read its clock at some time between the two: an offset within that range may be none. */
function offsetOf(serverTime: number, sentTime: number, receivedTime: number): number {
  if (serverTime < sentTime) return sentTime - serverTime;
  return serverTime > receivedTime ? receivedTime - serverTime : 0;
}
