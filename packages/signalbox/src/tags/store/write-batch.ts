/**
 * Executes writes of one account in one transaction: rows, history and index.
 *
 * Invariants:
 * 1. The row of the account is updated first. On PostgreSQL this locks the account, so the batches of one account never run concurrently.
 * 2. Each write sees the state after the writes before it. A refused write has no effect on the database or on other writes.
 */
import { foldCase, parseCanonicalTags, type Tags } from "@signalbox/protocol";
import type { Queryable } from "../../database/database.ts";
import { sql, type SqlValue } from "../../core/sql.ts";
import { EMPTY_ETAG } from "./tag-write.ts";
import { IndexDelta } from "../../engines/tag-index/index.ts";
import { RowsStatement } from "../../core/rows-statement.ts";
import { findResourceRow, type ResourceRow, type TaggedResource, toTaggedResource } from "./resource-row.ts";
import { effectOf, outcomeOf, type TagWrite, type WriteOutcome, type WriteRules } from "./tag-write.ts";

export interface BatchOptions extends WriteRules {
  /** False for a load of existing data, which is not a change by a user. */
  readonly withHistory: boolean;
  /** No further write is executed after this time. */
  readonly budgetMs: number;
  readonly bitmapMinUses: number;
}

interface AccountRow {
  readonly next_resource: number;
  readonly next_key: number;
  readonly next_value: number;
  readonly next_change: number;
}

export interface BatchResult {
  readonly outcomes: WriteOutcome[];
  /** The resources before their writes, in the order of the outcomes. */
  readonly previous: (TaggedResource | null)[];
  readonly hasChanges: boolean;
}

const NO_TAGS: Tags = new Map();

const insertChanges = new RowsStatement(
  "INSERT INTO tag_change (account_no, change_no, resource_no, changed_at, actor, action, tags_before, tags_after) VALUES ",
  8,
);

/** Returns the outcomes of the executed writes: all of them, or after `budgetMs` the first ones, at least one. */
export async function writeBatch(
  tx: Queryable,
  accountNo: number,
  writes: readonly TagWrite[],
  options: BatchOptions,
): Promise<BatchResult> {
  const startedAt = performance.now();
  const account = await tx.get<AccountRow>(
    sql`UPDATE tag_account SET next_change = next_change WHERE account_no = ${accountNo}
        RETURNING next_resource, next_key, next_value, next_change`,
  );
  if (account === undefined) throw new Error(`the account number ${accountNo} is not in tag_account`);
  const batch = new Batch(tx, accountNo, account, options);
  const outcomes: WriteOutcome[] = [];
  for (const write of writes) {
    outcomes.push(await batch.apply(write));
    if (performance.now() - startedAt > options.budgetMs) break;
  }
  await batch.finish();
  return { outcomes, previous: batch.previous, hasChanges: batch.hasChanges };
}

class Batch {
  hasChanges = false;
  readonly previous: (TaggedResource | null)[] = [];
  #nextResource: number;
  #nextChange: number;
  readonly #indexCounters: { nextKey: number; nextValue: number };
  readonly #tx: Queryable;
  readonly #accountNo: number;
  readonly #index: IndexDelta;
  readonly #options: BatchOptions;
  readonly #changes: SqlValue[] = [];

  constructor(tx: Queryable, accountNo: number, account: AccountRow, options: BatchOptions) {
    this.#tx = tx;
    this.#accountNo = accountNo;
    this.#nextResource = account.next_resource;
    this.#nextChange = account.next_change;
    this.#indexCounters = { nextKey: account.next_key, nextValue: account.next_value };
    this.#index = new IndexDelta(tx, accountNo, this.#indexCounters, options.bitmapMinUses);
    this.#options = options;
  }

  async apply(write: TagWrite): Promise<WriteOutcome> {
    const row = await findResourceRow(this.#tx, this.#accountNo, write.resource);
    const current = row === undefined ? null : toTaggedResource(row);
    this.previous.push(current);
    const effect = effectOf(write, current, row?.updated_at ?? 0, this.#options);
    if (effect.kind === "changed") {
      this.hasChanges = true;
      const resourceNo = row?.resource_no ?? this.#nextResource++;
      await this.#writeRow(write, row, resourceNo, effect.next);
      if (effect.hasNewTags) {
        await this.#index.change(resourceNo, write.resource.type, tagsOf(current), tagsOf(effect.next));
        this.#recordChange(write, resourceNo, current, effect.next);
      }
    }
    return outcomeOf(write, effect, current);
  }

  /** Writes the index, the history and the counters of the account. */
  async finish(): Promise<void> {
    await this.#index.flush();
    await insertChanges.run(this.#tx, this.#changes);
    if (!this.hasChanges) return;
    const { nextKey, nextValue } = this.#indexCounters;
    await this.#tx.run(
      sql`UPDATE tag_account SET next_resource = ${this.#nextResource}, next_key = ${nextKey},
          next_value = ${nextValue}, next_change = ${this.#nextChange} WHERE account_no = ${this.#accountNo}`,
    );
  }

  async #writeRow(
    write: TagWrite,
    row: ResourceRow | undefined,
    resourceNo: number,
    next: TaggedResource | null,
  ): Promise<void> {
    const { type, id, zoneId, parentId } = write.resource;
    const tags = next?.tags ?? null;
    const etag = next?.etag ?? EMPTY_ETAG;
    const updatedAt = next?.updatedAt ?? Math.max(this.#options.now, row?.updated_at ?? 0);
    const name = next?.name ?? row?.name ?? id;
    await this.#tx.run(
      row === undefined
        ? sql`INSERT INTO tag_resource (account_no, resource_no, type, id, zone_id, parent_id, name, name_folded, tags, etag, updated_at)
              VALUES (${this.#accountNo}, ${resourceNo}, ${type}, ${id}, ${zoneId}, ${parentId},
                      ${name}, ${foldCase(name)}, ${tags}, ${etag}, ${updatedAt})`
        : sql`UPDATE tag_resource SET name = ${name}, name_folded = ${foldCase(name)}, tags = ${tags}, etag = ${etag},
              updated_at = ${updatedAt} WHERE account_no = ${this.#accountNo} AND resource_no = ${resourceNo}`,
    );
  }

  #recordChange(
    write: TagWrite,
    resourceNo: number,
    before: TaggedResource | null,
    after: TaggedResource | null,
  ): void {
    if (!this.#options.withHistory) return;
    const at = after?.updatedAt ?? this.#options.now;
    this.#changes.push(
      this.#accountNo,
      this.#nextChange++,
      resourceNo,
      at,
      write.actor,
      write.action,
      before?.tags ?? null,
      after?.tags ?? null,
    );
  }
}

function tagsOf(resource: TaggedResource | null): Tags {
  return resource === null ? NO_TAGS : parseCanonicalTags(resource.tags);
}
