/**
 * What the clients know of one instance of the chain agent, and the comparison with its rows.
 *
 * Rules:
 * 1. Nothing is lost: each event that was acknowledged has a row.
 * 2. Nothing is doubled: each id has one row at most, and no row has an id that no client sent.
 * 3. The order is kept: the hashes of the rows form a chain; an event that was acknowledged before another one was sent has the earlier row. An
 *    event that was answered 202 is exempt: it was stored, and is handled later.
 * 4. Reads are linearisable: an answer to a request that began after another answer had arrived is not older, and what it says is in the chain.
 * 5. No split brain: an epoch belongs to one process, and no answer of an epoch arrives for a request that began after an answer of a later
 *    epoch had arrived. Rows of a later epoch follow those of an earlier one.
 * 6. Work runs: what was queued or scheduled by an event took effect once, and nothing else did.
 * 7. A socket is connected once: no second `onConnect` after the client has a message of the first. If a node is lost before that message has left,
 *    the outcome is unknown, and `onConnect` runs again.
 */
import type { ChainAnswer, ChainHead, EventKind, EventRow, WorkAudit } from "./chain-agent.ts";
import { nextHash, START_HASH } from "./chain-hash.ts";

interface SentEvent {
  readonly kind: EventKind;
  readonly sentAt: number;
  /** Of the first acknowledgement; null if there was none. */
  endedAt: number | null;
  isStoredOnly: boolean;
}

export class ChainModel {
  readonly name: string;
  readonly #report: (text: string) => void;
  readonly #events = new Map<string, SentEvent>();
  /** What clients saw of rows that have not been audited yet. */
  #claims: ChainHead[] = [];
  readonly #processOfEpoch = new Map<number, string>();
  /** The latest answer that has arrived. */
  #known: ChainHead & { readonly epoch: number } = { seq: 0, hash: START_HASH, epoch: 0 };
  /** Messages of `onConnect` that arrived, by socket. */
  readonly #connected = new Map<string, number>();

  // As of the last audit.
  /** By row. */
  readonly #hashes = [START_HASH];
  #audited: ChainHead = { seq: 0, hash: START_HASH };
  #auditedEpoch = 0;
  /** The latest time at which an audited event was sent. */
  #latestSentAt = -Infinity;
  readonly #planned = new Set<string>();
  #rows = 0;

  constructor(name: string, report: (text: string) => void) {
    this.name = name;
    this.#report = (text) => report(`${text} (${name})`);
  }

  get auditedSeq(): number {
    return this.#audited.seq;
  }

  get rows(): number {
    return this.#rows;
  }

  /** To be read before a request is sent: its answer must not be older. */
  get known(): ChainHead & { readonly epoch: number } {
    return this.#known;
  }

  sending(id: string, kind: EventKind): void {
    if (!this.#events.has(id))
      this.#events.set(id, { kind, sentAt: performance.now(), endedAt: null, isStoredOnly: false });
  }

  acknowledged(id: string, isStoredOnly = false): void {
    const event = this.#events.get(id);
    if (event === undefined || event.endedAt !== null) return;
    event.endedAt = performance.now();
    event.isStoredOnly = isStoredOnly;
  }

  /** An answer arrived whose request began when `before` was known. */
  answered(answer: ChainAnswer, before: ChainHead & { readonly epoch: number }, who: string): void {
    const { seq, epoch, process } = answer;
    if (seq < before.seq) this.#report(`stale answer: ${who} returned ${seq} after ${before.seq} was known`);
    if (epoch < before.epoch)
      this.#report(
        `split brain: ${who} answered in epoch ${epoch} of ${process} after epoch ${before.epoch} had answered`,
      );
    const owner = this.#processOfEpoch.get(epoch) ?? process;
    if (owner !== process) this.#report(`split brain: epoch ${epoch} is of ${owner} and of ${process}`);
    this.#processOfEpoch.set(epoch, owner);
    this.saw(answer);
    if (seq > this.#known.seq || epoch > this.#known.epoch)
      this.#known = {
        seq: Math.max(seq, this.#known.seq),
        hash: answer.hash,
        epoch: Math.max(epoch, this.#known.epoch),
      };
  }

  /** A client learned of a state, which has to be in the chain. */
  saw({ seq, hash }: ChainHead): void {
    if (seq > this.#audited.seq) {
      this.#claims.push({ seq, hash });
      return;
    }
    const found = this.#hashes[seq];
    if (found !== undefined && found !== hash)
      this.#report(`forked: a client saw ${hash} at row ${seq}, it is ${found}`);
  }

  connected(nonce: string): void {
    const times = (this.#connected.get(nonce) ?? 0) + 1;
    this.#connected.set(nonce, times);
    if (times > 1) this.#report(`doubled: socket ${nonce} was connected ${times} times`);
  }

  /** Checks rows that follow those of the last audit. Called in order. */
  checkRows(rows: readonly EventRow[]): void {
    for (const row of rows) {
      this.#checkRow(row);
      this.#hashes[row.seq] = row.hash;
      this.#audited = row;
      this.#rows += 1;
    }
    const claims = this.#claims;
    this.#claims = [];
    for (const claim of claims) this.saw(claim);
  }

  #checkRow({ seq, id, kind, hash, epoch }: EventRow): void {
    if (seq !== this.#audited.seq + 1) this.#report(`gap: row ${seq} follows row ${this.#audited.seq}`);
    if (hash !== nextHash(this.#audited.hash, id)) this.#report(`broken chain: row ${seq}, ${id}`);
    if (epoch < this.#auditedEpoch)
      this.#report(`split brain: row ${seq} is of epoch ${epoch}, an earlier one of ${this.#auditedEpoch}`);
    this.#auditedEpoch = Math.max(epoch, this.#auditedEpoch);
    const event = this.#events.get(id);
    if (event === undefined) {
      this.#report(`doubled: ${id} has a second row ${seq}, or nobody sent it`);
      return;
    }
    this.#events.delete(id);
    if (event.kind !== kind) this.#report(`mixed up: ${id} is ${kind}, but was sent as ${event.kind}`);
    const { sentAt, endedAt, isStoredOnly } = event;
    if (endedAt !== null && !isStoredOnly && endedAt < this.#latestSentAt)
      this.#report(`out of order: ${id} was acknowledged before an event with an earlier row was sent`);
    this.#latestSentAt = Math.max(sentAt, this.#latestSentAt);
    if (kind === "queue" || kind === "schedule") this.#planned.add(id);
  }

  /** Called when all rows were checked and nothing is under way. */
  checkEnd(audit: WorkAudit): void {
    for (const [id, { endedAt, isStoredOnly }] of this.#events) {
      if (endedAt !== null)
        this.#report(`lost: ${id} was acknowledged${isStoredOnly ? " with 202" : ""} and has no row`);
    }
    for (const { seq } of this.#claims)
      this.#report(`lost: a client saw row ${seq}, the last one is ${this.#audited.seq}`);
    for (const { id, times } of audit.work) {
      if (!this.#planned.has(id)) this.#report(`doubled: work of ${id} was not planned`);
      else if (times !== 1) this.#report(`doubled: work of ${id} took effect ${times} times`);
    }
    const done = new Set(audit.work.map(({ id }) => id));
    for (const id of this.#planned) {
      if (!done.has(id)) this.#report(`lost: work of ${id} did not run; ${audit.deadLetters} dead letters`);
    }
    for (const { epoch, process } of audit.activations) {
      const owner = this.#processOfEpoch.get(epoch) ?? process;
      if (owner !== process)
        this.#report(`split brain: epoch ${epoch} is of ${process}, but ${owner} answered in it`);
    }
    const stored = new Set(audit.connects.map(({ nonce }) => nonce));
    for (const nonce of this.#connected.keys())
      if (!stored.has(nonce))
        this.#report(`lost: socket ${nonce} was connected, and its onConnect is not stored`);
  }
}
