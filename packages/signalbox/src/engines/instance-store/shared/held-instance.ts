/**
 * What this node knows of an instance that it owns. Everything here is a copy: the truth is in PostgreSQL.
 *
 *   held ──a record was refused, or its outcome stayed unknown──► fenced (final; the next claim makes another object)
 */
import type { NodeInc } from "../../../core/node-inc.ts";
import { type FenceReason, InstanceFencedError } from "./ownership.ts";
import type { History, InstanceState } from "./history.ts";

export interface HeldOptions {
  readonly name: string;
  /** 40 hexadecimal digits; also the name of the cache file. */
  readonly key: string;
  readonly id: number;
  readonly epoch: number;
  /** The incarnation that has claimed the instance. */
  readonly node: NodeInc;
  readonly claimSeq: number;
  /** Identifies the claim. */
  readonly mark: number;
  readonly snapSeq: number;
  readonly partBytes: number;
  readonly history: History;
}

/** The open database of an instance. */
export interface OpenInstance {
  /** A record was acknowledged. */
  acknowledged(): void;
}

export class HeldInstance {
  readonly name: string;
  readonly key: string;
  readonly id: number;
  readonly epoch: number;
  readonly node: NodeInc;
  /** The position of the claim of this epoch. */
  readonly claimSeq: number;
  readonly history: History;
  /** The last acknowledged position. */
  head: number;
  /** Identifies the record there. */
  mark: number;
  snapSeq: number;
  /** Stored bytes of the parts, and of the records after the snapshot. */
  partBytes: number;
  logBytes = 0;
  logRecords = 0;
  /** Parts that changed after the snapshot; null: all of them. */
  dirtyParts: Set<number> | null = null;
  /** Size of the database after the last acknowledged record, in pages. */
  databasePages = 0;
  /** The template of a database that has no record yet. */
  template: Buffer | null = null;
  open: OpenInstance | null = null;
  #fenced: InstanceFencedError | null = null;

  constructor({ name, key, id, epoch, node, claimSeq, mark, snapSeq, partBytes, history }: HeldOptions) {
    this.name = name;
    this.key = key;
    this.id = id;
    this.epoch = epoch;
    this.node = node;
    this.claimSeq = claimSeq;
    this.head = claimSeq;
    this.mark = mark;
    this.snapSeq = snapSeq;
    this.partBytes = partBytes;
    this.history = history;
  }

  get fenced(): InstanceFencedError | null {
    return this.#fenced;
  }

  /** Returns the error for the callers. The first reason stays. */
  fence(reason: FenceReason, cause?: unknown): InstanceFencedError {
    this.#fenced ??= new InstanceFencedError(reason, cause);
    return this.#fenced;
  }

  /** True if PostgreSQL knows this claim as the current one. */
  isOwnedIn(state: InstanceState | undefined): state is InstanceState {
    return state?.epoch === this.epoch && state.owner === this.node;
  }

  requireHeld(): void {
    if (this.#fenced !== null) throw this.#fenced;
  }
}
