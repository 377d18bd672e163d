/**
 * The history of each resource and the change feed of each account: two views of the table `tag_change`. `write-batch.ts` writes the table; this
 * file reads and prunes it.
 *
 * Invariant: the age and the number of changes per account are limited. The position of the last pruned change is stored, so a reader with an
 * older position gets an error and does not miss changes silently.
 * See docs/decisions/0032.
 */
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { parseCanonicalTags, SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import type { Database, Queryable } from "../../database/database.ts";
import { sql } from "../../core/sql.ts";
import type { TagChange, TagFeed } from "../../contracts/tag-feed.ts";
import type { AccountNumbers } from "./account-numbers.ts";
import { deleteUnusedTags } from "../../engines/tag-index/index.ts";
import { findResourceRow, type ResourceKey } from "./resource-row.ts";
import { scopeOfAccount } from "./tag-tables.ts";
import type { TagAction } from "./tag-write.ts";

export interface ChangeLogLimits {
  readonly maxAgeMs: number;
  /** Changes kept per account. */
  readonly maxChanges: number;
}

/** Rows that one pruning transaction reads: a few milliseconds of work. */
const PRUNE_STEP = 500;
/** Interval at which followers read changes that another process wrote. */
const POLL_MS = 1000;
const FOLLOW_PAGE = 100;

interface ChangeRow {
  readonly change_no: number;
  readonly resource_no: number;
  readonly changed_at: number;
  readonly actor: string;
  readonly action: TagAction;
  readonly tags_before: string | null;
  readonly tags_after: string | null;
  readonly type: string;
  readonly id: string;
  readonly zone_id: string;
  readonly parent_id: string;
  readonly name: string;
}

const CHANGE = sql`SELECT c.change_no, c.resource_no, c.changed_at, c.actor, c.action, c.tags_before, c.tags_after,
    r.type, r.id, r.zone_id, r.parent_id, r.name
  FROM tag_change c JOIN tag_resource r ON r.account_no = c.account_no AND r.resource_no = c.resource_no`;

export class ChangeLog implements TagFeed {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #accounts: AccountNumbers;
  readonly #limits: ChangeLogLimits;
  readonly #waiting = new Map<number, Set<() => void>>();

  constructor(database: Database, clock: Clock, accounts: AccountNumbers, limits: ChangeLogLimits) {
    this.#database = database;
    this.#clock = clock;
    this.#accounts = accounts;
    this.#limits = limits;
  }

  /** The changes of a resource before a position, newest first. */
  async history(
    accountId: string,
    resource: ResourceKey,
    before: number | null,
    limit: number,
  ): Promise<TagChange[]> {
    const accountNo = await this.#accounts.find(accountId);
    if (accountNo === null) return [];
    const row = await findResourceRow(this.#database, accountNo, resource);
    if (row === undefined) return [];
    const rows = await this.#database.all<ChangeRow>(
      sql`${CHANGE} WHERE c.account_no = ${accountNo} AND c.resource_no = ${row.resource_no}
          AND c.change_no < ${before ?? Number.MAX_SAFE_INTEGER} ORDER BY c.change_no DESC LIMIT ${limit}`,
    );
    return rows.map((change) => toChange(accountId, change));
  }

  /** The changes of the account after a position, oldest first. Throws `tags_changes_expired` if some of them were pruned. */
  async changes(accountId: string, after: number, limit: number): Promise<TagChange[]> {
    const accountNo = await this.#accounts.find(accountId);
    if (accountNo === null) return [];
    const account = await this.#database.get<{ pruned_change: number }>(
      sql`SELECT pruned_change FROM tag_account WHERE account_no = ${accountNo}`,
    );
    if (account !== undefined && after < account.pruned_change) {
      throw new SignalboxError("tags_changes_expired", {
        message: `changes after this position are no longer kept (the oldest position is ${account.pruned_change})`,
      });
    }
    const rows = await this.#database.all<ChangeRow>(
      sql`${CHANGE} WHERE c.account_no = ${accountNo} AND c.change_no > ${after} ORDER BY c.change_no LIMIT ${limit}`,
    );
    return rows.map((change) => toChange(accountId, change));
  }

  /** The position of the last pruned change: all changes that are kept follow it. */
  async oldestPosition(accountId: string): Promise<number> {
    const row = await this.#database.get<{ pruned_change: number }>(
      sql`SELECT pruned_change FROM tag_account WHERE account_id = ${accountId}`,
    );
    return row?.pruned_change ?? 0;
  }

  async newestPosition(accountId: string): Promise<number> {
    const row = await this.#database.get<{ next_change: number }>(
      sql`SELECT next_change FROM tag_account WHERE account_id = ${accountId}`,
    );
    return row === undefined ? 0 : row.next_change - 1;
  }

  async *follow(accountId: string, after: number, signal: AbortSignal): AsyncGenerator<TagChange> {
    let position = after;
    while (!signal.aborted) {
      const accountNo = await this.#accounts.find(accountId);
      // Registered before the read, so a change that is written during the read ends the wait at once.
      const notified = accountNo === null ? null : this.#nextNotification(accountNo, signal);
      const changes = await this.changes(accountId, position, FOLLOW_PAGE);
      for (const change of changes) {
        if (signal.aborted) return;
        yield change;
        position = change.position;
      }
      if (changes.length < FOLLOW_PAGE) await (notified ?? wait(signal));
    }
  }

  /** Makes the followers of the account read new changes at once. */
  notify(accountNo: number): void {
    for (const resume of this.#waiting.get(accountNo) ?? []) resume();
  }

  /** Deletes the changes of all accounts that exceed the limits, in short transactions. */
  async prune(signal: AbortSignal): Promise<void> {
    const accounts = await this.#database.all<{ account_no: number }>(
      sql`SELECT account_no FROM tag_account ORDER BY account_no`,
    );
    for (const { account_no: accountNo } of accounts) {
      while (!signal.aborted && (await this.#hasExpired(accountNo))) {
        await this.#database.transaction((tx) => this.#pruneStep(tx, accountNo), scopeOfAccount(accountNo));
        await nextTurn();
      }
    }
  }

  async #hasExpired(accountNo: number): Promise<boolean> {
    const row = await this.#database.get<{ change_no: number; changed_at: number; next_change: number }>(
      sql`SELECT c.change_no, c.changed_at, a.next_change FROM tag_change c JOIN tag_account a ON a.account_no = c.account_no
          WHERE c.account_no = ${accountNo} ORDER BY c.change_no LIMIT 1`,
    );
    return row !== undefined && this.#isExpired(row, row.next_change);
  }

  #isExpired(row: { change_no: number; changed_at: number }, nextChange: number): boolean {
    return (
      row.change_no < nextChange - this.#limits.maxChanges ||
      row.changed_at < this.#clock.now() - this.#limits.maxAgeMs
    );
  }

  async #pruneStep(tx: Queryable, accountNo: number): Promise<void> {
    const account = await tx.get<{ next_change: number }>(
      sql`UPDATE tag_account SET next_change = next_change WHERE account_no = ${accountNo} RETURNING next_change`,
    );
    const oldest = await tx.all<Pick<ChangeRow, "change_no" | "resource_no" | "changed_at" | "tags_before">>(
      sql`SELECT change_no, resource_no, changed_at, tags_before FROM tag_change
          WHERE account_no = ${accountNo} ORDER BY change_no LIMIT ${PRUNE_STEP}`,
    );
    const kept = oldest.findIndex((row) => !this.#isExpired(row, account?.next_change ?? 0));
    const expired = kept === -1 ? oldest : oldest.slice(0, kept);
    const last = expired.at(-1);
    if (last === undefined) return;
    await tx.run(
      sql`DELETE FROM tag_change WHERE account_no = ${accountNo} AND change_no <= ${last.change_no}`,
    );
    await tx.run(
      sql`UPDATE tag_account SET pruned_change = ${last.change_no} WHERE account_no = ${accountNo}`,
    );
    for (const resourceNo of new Set(expired.map((row) => row.resource_no))) {
      await tx.run(
        sql`DELETE FROM tag_resource WHERE account_no = ${accountNo} AND resource_no = ${resourceNo} AND tags IS NULL
            AND NOT EXISTS (SELECT 1 FROM tag_change c
                            WHERE c.account_no = ${accountNo} AND c.resource_no = ${resourceNo})`,
      );
    }
    await deleteUnusedTags(
      tx,
      accountNo,
      expired.flatMap((row) => (row.tags_before === null ? [] : [...parseCanonicalTags(row.tags_before)])),
    );
  }

  /** Resolves after a notification, the poll interval or an abort. */
  #nextNotification(accountNo: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const set = this.#waiting.get(accountNo) ?? new Set<() => void>();
      this.#waiting.set(accountNo, set);
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        set.delete(done);
        if (set.size === 0 && this.#waiting.get(accountNo) === set) this.#waiting.delete(accountNo);
        resolve();
      };
      const timer = setTimeout(done, POLL_MS);
      signal.addEventListener("abort", done, { once: true });
      set.add(done);
    });
  }
}

async function wait(signal: AbortSignal): Promise<void> {
  // The caller checks the signal.
  await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
}

function toChange(accountId: string, row: ChangeRow): TagChange {
  return {
    position: row.change_no,
    accountId,
    resource: {
      type: row.type,
      id: row.id,
      zoneId: row.zone_id,
      parentId: row.parent_id,
      name: row.name,
    },
    action: row.action,
    actor: row.actor,
    changedAt: row.changed_at,
    before: row.tags_before === null ? null : (JSON.parse(row.tags_before) as Record<string, string>),
    after: row.tags_after === null ? null : (JSON.parse(row.tags_after) as Record<string, string>),
  };
}
