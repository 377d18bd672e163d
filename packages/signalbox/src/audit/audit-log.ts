/**
 * Writes the audit log.
 *
 * Invariants:
 * 1. A change of the control plane's database commits together with its entry, or with a claim that stands for it. No change without a trace.
 * 2. The entry of a write is durable before the client is answered.
 * 3. A claim becomes exactly one entry: the transaction that adds the entry deletes the claim. A claim that a crash left behind becomes an entry
 *    with the outcome `unknown`.
 * 4. Entries are never changed. Only `prune` deletes, from the start of a chain, and it records that it did.
 * 5. The entries of an account are a chain: numbers without gaps, and each contains the hash of the one before it.
 * See docs/decisions/0188.
 */
import { SignalboxError } from "@signalbox/protocol";
import type {
  AuditTrail,
  PendingWrite,
  RecordedChange,
  WriteFacts,
  WriteResult,
} from "../contracts/audit-trail.ts";
import type { Clock } from "../core/clock.ts";
import type { Queryable } from "../core/queryable.ts";
import { repeat, type Repetition } from "../core/repeat.ts";
import { RowsStatement } from "../core/rows-statement.ts";
import { sql } from "../core/sql.ts";
import { ulid } from "../core/ulid.ts";
import type { Database } from "../database/database.ts";
import { ClientAddress } from "../engines/ip-address/index.ts";
import { chainEntry, ENTRY_COLUMN_COUNT, ENTRY_COLUMNS, type EntryDraft, FIRST_HASH } from "./audit-entry.ts";
import { SecretHider } from "./hide-secrets.ts";
import { type Retention, prune } from "./prune.ts";
import { RefusalBudget } from "./refusal-budget.ts";

/** Interval of claims that were left behind, counted refusals and retention. */
const UPKEEP_MS = 60_000;
/** Pause between two reports that an entry cannot be stored. */
const REPORT_MS = 60_000;
/** Age of a claim that no process finishes any more. A request does not run that long. */
const ABANDONED_MS = 15 * 60_000;
/** Any number that nothing else locks: on PostgreSQL a chain grows in one transaction at a time. SQLite has one writer. */
const CHAIN_LOCK = 7_361_001;

const insertEntries = new RowsStatement(
  `INSERT INTO audit_entry (${ENTRY_COLUMNS}) VALUES `,
  ENTRY_COLUMN_COUNT,
);

export interface AuditLogParts {
  /** Without the claims of `AuditedDatabase`. */
  readonly database: Database;
  readonly clock: Clock;
  readonly retention: Retention;
  /** Addresses and CIDR ranges whose `X-Forwarded-For` names the client. */
  readonly trustedProxies: readonly string[];
  /** The entry of a refused write could not be stored, or upkeep failed. */
  readonly onError: (error: unknown) => void;
}

export class AuditLog implements AuditTrail {
  readonly #parts: AuditLogParts;
  readonly #refusals = new RefusalBudget();
  readonly #address: ClientAddress;
  #upkeep: Repetition | undefined;
  #reportedAt = 0;

  constructor(parts: AuditLogParts) {
    this.#parts = parts;
    this.#address = new ClientAddress(parts.trustedProxies);
  }

  async start(): Promise<void> {
    const { database, clock } = this.#parts;
    // On SQLite this process is the only one, so every claim was left behind.
    await this.#settleClaims(database.engine === "sqlite" ? null : clock.now() - ABANDONED_MS);
    this.#upkeep = repeat(UPKEEP_MS, () => this.keep(), this.#parts.onError);
  }

  async stop(): Promise<void> {
    await this.#upkeep?.stop();
    await this.#recordCounted(true);
  }

  begin(facts: WriteFacts): PendingWrite {
    const { actor, forwardedFor } = facts;
    const ip = forwardedFor === null ? actor.ip : this.#address.of(actor.ip, forwardedFor);
    const known = ip === actor.ip ? facts : { ...facts, actor: { ...actor, ip } };
    return new Pending(this, known, this.#parts.clock.now());
  }

  async recordIn(
    tx: Queryable,
    changes: readonly { readonly write: PendingWrite; readonly change: RecordedChange }[],
  ): Promise<void> {
    const drafts = changes.flatMap(({ write, change }) =>
      write instanceof Pending ? [write.draft({ ...SUCCESS, ...change })] : [],
    );
    if (drafts.length > 0) await this.append(tx, drafts);
  }

  /** Adds entries of one account to its chain, in the transaction. */
  async append(tx: Queryable, drafts: readonly EntryDraft[]): Promise<void> {
    const accountId = drafts[0]?.facts.accountId ?? "";
    if (this.#parts.database.engine === "postgres") {
      await tx.all(sql`SELECT pg_advisory_xact_lock(${CHAIN_LOCK}, hashtext(${accountId}))`);
    }
    const last = await tx.get<{ seq: number; hash: string }>(
      sql`SELECT seq, hash FROM audit_entry WHERE account_id = ${accountId} ORDER BY seq DESC LIMIT 1`,
    );
    let seq = last?.seq ?? 0;
    let previousHash = last?.hash ?? FIRST_HASH;
    const values = drafts.flatMap((draft) => {
      const entry = chainEntry(draft, { seq: ++seq, previousHash });
      previousHash = entry.hash;
      return entry.values;
    });
    await insertEntries.run(tx, values);
  }

  /** Stores the entry and deletes the claim. */
  async store(draft: EntryDraft, isClaimed: boolean): Promise<void> {
    await this.#parts.database.transaction(async (tx) => {
      if (isClaimed && !(await deleteClaim(tx, draft.id))) return;
      await this.append(tx, [draft]);
    });
  }

  /** Stores the entry of a refused write within the limit of its caller. The refusal is answered even if storage fails. */
  async storeRefusal(draft: EntryDraft, isClaimed: boolean): Promise<void> {
    const { accountId, actor } = draft.facts;
    const caller = actor.type === "token" ? actor.id : actor.type;
    const isRecorded = actor.type === "root" || this.#refusals.take(accountId, caller, draft.at);
    if (isRecorded || isClaimed) await this.storeOrReport(draft, isClaimed);
  }

  /** Stores the entry of a write that changed nothing. If that fails, the operator learns it, and the client is answered all the same. */
  async storeOrReport(draft: EntryDraft, isClaimed: boolean): Promise<void> {
    try {
      await this.store(draft, isClaimed);
    } catch (error) {
      const now = this.#parts.clock.now();
      // While the disk is full, every refusal fails.
      if (Math.abs(now - this.#reportedAt) < REPORT_MS) return;
      this.#reportedAt = now;
      this.#parts.onError(error);
    }
  }

  /** Settles abandoned claims, records counted refusals and applies the retention. */
  async keep(): Promise<void> {
    const { clock, database, retention } = this.#parts;
    await this.#settleClaims(clock.now() - ABANDONED_MS);
    await this.#recordCounted(false);
    const pruned = await prune(database, retention, clock.now());
    for (const { accountId, count, until } of pruned) {
      const after = { deleted: count, until: new Date(until).toISOString() };
      await this.#recordOwn(accountId, "prune", "Entries beyond the retention were deleted", after);
    }
  }

  async #settleClaims(olderThan: number | null): Promise<void> {
    const { database } = this.#parts;
    const claims = await database.all<{ id: string; at: number; facts: string }>(
      olderThan === null
        ? sql`SELECT id, at, facts FROM audit_claim ORDER BY at LIMIT 1000`
        : sql`SELECT id, at, facts FROM audit_claim WHERE at < ${olderThan} ORDER BY at LIMIT 1000`,
    );
    for (const { id, at, facts: text } of claims) {
      const { facts, request, before } = JSON.parse(text) as WriteClaim;
      const result: WriteResult = {
        outcome: "unknown",
        status: null,
        code: null,
        message: "The server stopped before it answered. The change was stored, at least in part",
        request,
        before,
      };
      await this.store({ id, at, facts, result }, true);
    }
  }

  async #recordCounted(isLast: boolean): Promise<void> {
    for (const { accountId, caller, count } of this.#refusals.takeUnrecorded(
      this.#parts.clock.now(),
      isLast,
    )) {
      await this.#recordOwn(accountId, "refuse", "More refused writes than are recorded per minute", {
        caller,
        count,
      });
    }
  }

  /** Records an act of the audit log itself. */
  async #recordOwn(accountId: string, action: string, message: string, after: object): Promise<void> {
    const facts: WriteFacts = {
      accountId,
      requestId: "",
      actor: { type: "system", id: "", name: "audit log", session: null, ip: null },
      action,
      operation: "",
      resourceType: "audit_logs",
      resourceId: "",
      path: "",
      userAgent: null,
      forwardedFor: null,
    };
    const at = this.#parts.clock.now();
    const result: WriteResult = { ...SUCCESS, message, after };
    await this.store({ id: ulid(at).toLowerCase(), at, facts, result }, false);
  }
}

/** The content of a row of `audit_claim`, without secrets. */
interface WriteClaim extends Pick<WriteResult, "request" | "before"> {
  readonly facts: WriteFacts;
}

const SUCCESS = { outcome: "success", status: 200, code: null, message: null } as const;

/** States: begun → claimed (with a change) → complete. A store that knows the whole change goes from begun to complete. */
class Pending implements PendingWrite {
  readonly #log: AuditLog;
  readonly #facts: WriteFacts;
  readonly #id: string;
  readonly #at: number;
  #known: Pick<WriteResult, "request" | "before"> = {};
  #state: "begun" | "claimed" | "complete" = "begun";

  constructor(log: AuditLog, facts: WriteFacts, at: number) {
    this.#log = log;
    this.#facts = facts;
    this.#at = at;
    this.#id = ulid(at).toLowerCase();
  }

  get isClaimed(): boolean {
    return this.#state !== "begun";
  }

  get isComplete(): boolean {
    return this.#state === "complete";
  }

  prepare(known: Pick<WriteResult, "request" | "before">): void {
    this.#known = known;
  }

  draft(result: WriteResult): EntryDraft {
    return { id: this.#id, at: this.#at, facts: this.#facts, result };
  }

  async claimIn(tx: Queryable): Promise<void> {
    const [request, before] = new SecretHider().hide(this.#known.request, this.#known.before);
    const claim = `{"facts":${JSON.stringify(this.#facts)},"request":${request},"before":${before}}`;
    await tx.run(
      sql`INSERT INTO audit_claim (id, account_id, at, facts)
          VALUES (${this.#id}, ${this.#facts.accountId}, ${this.#at}, ${claim})
          ON CONFLICT (id) DO NOTHING`,
    );
  }

  committed(isComplete: boolean): void {
    if (isComplete) this.#state = "complete";
    else if (this.#state === "begun") this.#state = "claimed";
  }

  async finish(result: WriteResult): Promise<void> {
    const state = this.#state;
    if (state === "complete" && result.outcome === "success") return;
    this.#state = "complete";
    // The change is in the log already; what failed after it gets an entry of its own.
    const draft =
      state === "complete" ? { ...this.draft(result), id: ulid(this.#at).toLowerCase() } : this.draft(result);
    const isClaimed = state === "claimed";
    if (result.outcome !== "success") return this.#log.storeRefusal(draft, isClaimed);
    if (result.changedNothing === true) return this.#log.storeOrReport(draft, isClaimed);
    try {
      await this.#log.store(draft, isClaimed);
    } catch (error) {
      // A claim becomes an entry later. Without one, the client must not take the change for recorded.
      if (!isClaimed) throw new SignalboxError("write_outcome_unknown", { cause: error });
    }
  }
}

async function deleteClaim(tx: Queryable, id: string): Promise<boolean> {
  return (await tx.run(sql`DELETE FROM audit_claim WHERE id = ${id}`)).changes > 0;
}
