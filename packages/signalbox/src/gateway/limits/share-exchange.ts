/**
 * Exchanges amounts with PostgreSQL: reports what calls of this node used and hold, takes what waiting calls need, takes ahead for those that
 * follow, and gives back what is not used.
 *
 * One statement is under way at a time, for all buckets that have something to report or to ask for. It is sent
 *   - at once when a call waits, when little is left at this node of a bucket that is in use, and when little is left of a limit at all;
 *   - otherwise after `TICK_MS`, while this node has something to report or to give back.
 *
 * Invariants:
 * 1. A statement without an answer is repeated as it was until it is answered. The table counts it once.
 * 2. A call is refused only if the amounts that are used and held leave no room for it. If the room is with other nodes, the call waits: they
 *    give it back within `TICK_MS`, because a bucket in which a call waits is tight.
 * 3. Nothing is taken ahead above four fifths of a limit.
 * 4. A call that must begin alone is asked for alone; others at this node wait for the next statement.
 * 5. When this node was declared dead, it begins with nothing: what it had is counted as spent.
 * See docs/decisions/0156.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { SignalboxError } from "@signalbox/protocol";
import { Claim, type SharedNeed } from "./claim.ts";
import type { Refusal } from "./limit-refusal.ts";
import { emptyAsk, endOfRow } from "./share-ask.ts";
import type { Exchanged, ShareAsk, ShareRow, ShareTable } from "./share-table.ts";
import type { SharedBucket } from "./shared-bucket.ts";
import type { SharedClock } from "../../core/shared-clock.ts";
import { adoptWindow, convertRow } from "./share-window.ts";

export interface ShareExchangeParts {
  readonly table: ShareTable;
  readonly clock: SharedClock;
  /** The current identity of this node. */
  readonly incarnation: () => string;
  /** Called when a statement failed; it is repeated. */
  readonly onError: (error: unknown) => void;
  /** This node has a new identity. */
  readonly onRejoined: () => void;
}

/** Unused amounts are given back, and used ones are reported, within this time. */
const TICK_MS = 100;
/** Between statements for calls that wait for other nodes. */
const RETRY_MS = 5;
const MAX_RETRY_MS = 25;
/** Between attempts while the database is unavailable. */
const UNAVAILABLE_MS = 500;
/** More would hold the locks of one statement for too long. */
const MAX_ROWS = 500;

interface Batch {
  readonly inc: string;
  readonly seq: number;
  /** When the slots of the asks were computed. */
  readonly at: number;
  readonly asks: ReadonlyMap<SharedBucket, ShareAsk>;
}

export class ShareExchange {
  readonly #parts: ShareExchangeParts;
  /** Buckets with something to report. */
  readonly #changed = new Set<SharedBucket>();
  /** Buckets of which this node has taken amounts ahead. */
  readonly #holding = new Set<SharedBucket>();
  #claims: Claim[] = [];
  #inc = "";
  #seq = 0;
  #sending: Promise<void> | null = null;
  #isDue = false;
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #immediate: NodeJS.Immediate | undefined;
  #retryMs = RETRY_MS;
  #isStopped = false;

  constructor(parts: ShareExchangeParts) {
    this.#parts = parts;
  }

  /** Takes all amounts from what this node has; false, and nothing taken, if one of them is not here. */
  tryTake(needs: readonly SharedNeed[]): boolean {
    const now = this.#parts.clock.now();
    let isHere = true;
    for (const need of needs) {
      const { rule, bucket, runsAlone } = need;
      bucket.useRule(rule.limit);
      // Only the database knows whether another node has a call.
      isHere &&= !runsAlone && bucket.waiting === 0 && bucket.canTake(need, now);
    }
    if (!isHere) return false;
    for (const need of needs) {
      const { bucket } = need;
      bucket.take(need, now);
      if (bucket.spare < bucket.target / 2) this.#schedule(0);
    }
    return true;
  }

  /** Takes all amounts or none, at once or as soon as the database has answered; null when they are taken. Never rejects. */
  take(needs: readonly SharedNeed[]): Promise<Refusal | null> | null {
    if (this.tryTake(needs)) return null;
    const claim = new Claim(needs, this.#seq + 1);
    if (this.#isStopped) claim.fail(new SignalboxError("storage_unavailable"));
    else {
      this.#claims.push(claim);
      this.#schedule(0);
    }
    return claim.decided;
  }

  /** The bucket has something to report. */
  changed(bucket: SharedBucket): void {
    this.#changed.add(bucket);
    this.#schedule(bucket.isTight ? 0 : TICK_MS);
  }

  /** Reports everything and gives back what is not used. Rejects if the database is unavailable. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    clearImmediate(this.#immediate);
    await this.#sending;
    this.#failClaims(new SignalboxError("storage_unavailable"));
    let isRepeated = false;
    while (this.#changed.size > 0 || this.#holding.size > 0) {
      const before = this.#changed.size + this.#holding.size;
      this.#isDue = false;
      await this.#round();
      const isLess = this.#changed.size + this.#holding.size < before;
      // After a pause, or if the clock was set, the first statement counts nothing: its answer corrects the clock. Amounts that cannot be reported at
      // all are counted by the other nodes.
      if (!isLess && (isRepeated || !this.#isDue)) return;
      isRepeated ||= !isLess;
    }
  }

  #schedule(ms: number): void {
    if (this.#isStopped) return;
    if (this.#sending !== null) {
      this.#isDue ||= ms === 0;
      return;
    }
    if (ms === 0) {
      this.#immediate ??= setImmediate(() => this.#send());
      return;
    }
    const at = performance.now() + ms;
    if (at >= this.#timerAt) return;
    clearTimeout(this.#timer);
    this.#timerAt = at;
    this.#timer = setTimeout(() => this.#send(), ms).unref();
  }

  #send(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#immediate);
    this.#timerAt = Number.POSITIVE_INFINITY;
    this.#immediate = undefined;
    if (this.#sending !== null || this.#isStopped) return;
    this.#isDue = false;
    this.#sending = this.#round()
      .catch((error: unknown) => {
        this.#failClaims(new SignalboxError("internal", { cause: error }));
        this.#parts.onError(error);
      })
      .finally(() => {
        this.#sending = null;
        this.#scheduleNext();
      });
  }

  #scheduleNext(): void {
    const isUrgent = this.#isDue || this.#claims.some(({ from }) => from > this.#seq);
    if (isUrgent || hasTight(this.#changed) || hasTight(this.#holding)) this.#schedule(0);
    else if (this.#claims.length > 0) {
      this.#schedule(this.#retryMs * (0.5 + Math.random()));
      this.#retryMs = Math.min(this.#retryMs * 2, MAX_RETRY_MS);
    } else if (this.#changed.size > 0 || this.#holding.size > 0) this.#schedule(TICK_MS);
    if (this.#claims.length === 0) this.#retryMs = RETRY_MS;
  }

  async #round(): Promise<void> {
    this.#useIncarnation();
    const buckets = this.#collect();
    if (buckets.length === 0) return;
    const known = await this.#ensure(buckets);
    if (known.length === 0) return;
    const batch = this.#createBatch(known);
    const answer = await this.#exchange(batch);
    if (answer === null) return;
    if (!answer.isAlive) return this.#declaredDead(batch);
    const outdated = this.#apply(batch, answer.rows, answer.sentAt);
    const now = this.#parts.clock.now();
    for (const [bucket, row] of outdated) {
      // A row that could not be converted is found again by the next statement.
      if (!adoptWindow(bucket, row))
        await convertRow(this.#parts.table, bucket, row, now).catch(this.#parts.onError);
    }
  }

  /** Sends the statement until it is answered; null if the service stops. */
  async #exchange({ inc, at, asks }: Batch): Promise<(Exchanged & { readonly sentAt: number }) | null> {
    const { table, clock, onError } = this.#parts;
    for (;;) {
      try {
        const sentAt = performance.now();
        const sentTime = clock.local.now();
        const answer = await table.exchange(inc, at, [...asks.values()]);
        clock.adjust(sentTime, answer.now);
        return { ...answer, sentAt };
      } catch (error) {
        onError(error);
        this.#failClaims(toUnavailable(error));
        if (this.#isStopped) return null;
        await sleep(UNAVAILABLE_MS, undefined, { ref: false });
      }
    }
  }

  /** Buckets for the next statement: first those that calls wait for. */
  #collect(): SharedBucket[] {
    const buckets = new Set<SharedBucket>();
    for (const { needs } of this.#claims) for (const { bucket } of needs) buckets.add(bucket);
    for (const set of [this.#changed, this.#holding]) {
      for (const bucket of set) {
        if (bucket.isForgotten || bucket.isDropped) set.delete(bucket);
        else if (buckets.size < MAX_ROWS) buckets.add(bucket);
        else this.#isDue ||= set === this.#changed && !buckets.has(bucket);
      }
    }
    return [...buckets];
  }

  /** Creates missing rows; a bucket whose row is not known yet takes part in the next statement. */
  async #ensure(buckets: readonly SharedBucket[]): Promise<SharedBucket[]> {
    const missing = new Map<string, SharedBucket>();
    for (const bucket of buckets) if (bucket.row === null) missing.set(nameOf(bucket), bucket);
    if (missing.size > 0) {
      const now = this.#parts.clock.now();
      const rows = await this.#parts.table
        .ensure(
          [...missing.values()].map((bucket) => ({
            account_id: bucket.owner.accountId,
            owner: bucket.owner.key,
            bucket: bucket.key,
            kind: bucket.kind,
            window_key: bucket.window.key,
            ends_at: endOfRow(bucket, bucket.window.slotOf(now), now),
          })),
        )
        .catch((error: unknown) => {
          this.#parts.onError(error);
          this.#failClaims(toUnavailable(error));
          return [];
        });
      for (const { account_id: accountId, owner, bucket, id } of rows) {
        const found = missing.get(`${accountId}\n${owner}\n${bucket}`);
        if (found !== undefined) found.row = id;
      }
      if (rows.length < missing.size) this.#isDue = rows.length > 0;
    }
    return buckets.filter(({ row }) => row !== null);
  }

  #createBatch(buckets: readonly SharedBucket[]): Batch {
    const now = this.#parts.clock.now();
    const seq = ++this.#seq;
    const asks = new Map(buckets.map((bucket) => [bucket, emptyAsk(bucket, seq, now)] as const));
    for (const { needs } of this.#claims) {
      for (const { bucket, amount, expected, isBounded, runsAlone, isForced } of needs) {
        const ask = asks.get(bucket);
        if (ask === undefined) continue;
        if (isForced) ask.forced += amount;
        else if (ask.single || (runsAlone && ask.need > 0)) continue;
        else {
          ask.single = runsAlone;
          if (!isBounded && ask.need === 0) ask.alone = amount;
          ask.need += amount;
        }
        ask.likely += expected;
      }
    }
    // Calls at two nodes that wait for the same buckets must not wait for each other.
    const isYielding = this.#retryMs > RETRY_MS * 2 && Math.random() < 0.5;
    for (const [bucket, ask] of asks) {
      const target = this.#isStopped ? 0 : bucket.measure();
      ask.keep = bucket.mustReturn || ask.single ? 0 : Math.min(bucket.spare, Math.max(target, ask.need));
      bucket.mustReturn = false;
      ask.prefer = Math.max(0, target - Math.max(0, ask.keep - ask.need));
      ask.need = Math.max(0, ask.need - ask.keep);
      if (isYielding) ask.keep = ask.need = ask.alone = ask.prefer = 0;
      bucket.spare = ask.keep;
      ask.charge = bucket.charged;
      bucket.charged = 0;
      ask.held = bucket.held;
      ask.expected = bucket.expected;
      this.#changed.delete(bucket);
    }
    return { inc: this.#inc, seq, at: now, asks };
  }

  /** Returns the buckets whose rows have another window. */
  #apply({ asks, seq }: Batch, rows: readonly ShareRow[], sentAt: number): [SharedBucket, ShareRow][] {
    const now = this.#parts.clock.now();
    const byId = new Map(rows.map((row) => [row.id, row]));
    const outdated: [SharedBucket, ShareRow][] = [];
    for (const [bucket, ask] of asks) {
      const row = byId.get(ask.id);
      if (row === undefined || row.is_off || row.window_key !== ask.window_key) {
        // Nothing was counted. The clock follows PostgreSQL's now, and the next statement has new slots.
        bucket.charged += ask.charge;
        bucket.spare = 0;
        this.#changed.add(bucket);
        this.#isDue = true;
        if (row === undefined) bucket.row = null;
        else if (row.window_key !== ask.window_key) outdated.push([bucket, row]);
        continue;
      }
      bucket.spare += row.own_spare - ask.keep;
      bucket.reportedHeld = ask.held;
      bucket.update(
        {
          used: row.used,
          heldByOthers: row.others_held,
          spareOfOthers: row.others_spare,
          isTight: row.is_tight,
        },
        now,
      );
      bucket.confirm(sentAt, now);
      bucket.answeredBy = seq;
      bucket.reportExceeded(ask.charge, now);
    }
    this.#decide(now);
    for (const bucket of asks.keys()) {
      if (bucket.spare > 0) this.#holding.add(bucket);
      else this.#holding.delete(bucket);
    }
    return outdated;
  }

  #decide(now: number): void {
    for (const claim of this.#claims) claim.decide(now);
    this.#claims = this.#claims.filter(({ isWaiting }) => isWaiting);
  }

  #failClaims(error: SignalboxError): void {
    for (const claim of this.#claims) claim.fail(error);
    this.#claims = [];
  }

  #useIncarnation(): void {
    const inc = this.#parts.incarnation();
    if (inc === this.#inc) return;
    const isFirst = this.#inc === "";
    this.#inc = inc;
    if (!isFirst) this.#beginAnew();
  }

  /** Until the node has joined again, calls under limits are refused. */
  #declaredDead({ asks }: Batch): void {
    for (const [bucket, ask] of asks) bucket.charged += ask.charge;
    this.#beginAnew();
  }

  #beginAnew(): void {
    this.#failClaims(toUnavailable(null));
    this.#changed.clear();
    this.#holding.clear();
    this.#parts.onRejoined();
  }
}

/** Other nodes may wait for what this one has of the bucket. */
function hasTight(buckets: Iterable<SharedBucket>): boolean {
  for (const { isTight, waiting } of buckets) if (isTight && waiting === 0) return true;
  return false;
}

function nameOf({ owner, key }: SharedBucket): string {
  return `${owner.accountId}\n${owner.key}\n${key}`;
}

function toUnavailable(error: unknown): SignalboxError {
  return new SignalboxError("storage_unavailable", {
    message: "The limits of the call cannot be checked: the database is unavailable",
    headers: { "retry-after": "1" },
    cause: error,
  });
}
