/**
 * Carries out writes of one account inside one transaction: rows, history and index together.
 *
 * Invariants:
 * 1. The account's row is updated first; on an engine with concurrent transactions that is the lock under which everything else here
 *    is read and written, so two batches of one account never interleave.
 * 2. Each write is decided on the state that the writes before it left. A refused write leaves no trace and does not touch the others.
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
  /** False for a load of existing data, which is not a change anyone made. */
  readonly withHistory: boolean;
  /** Stop taking writes after this time; the rest is left to the next batch. */
  readonly budgetMs: number;
  readonly bitmapMinUses: number;
}

interface AccountRow {
  readonly next_resource: number;
  readonly next_key: number;
  readonly next_value: number;
  readonly next_change: number;
}

const NO_TAGS: Tags = new Map();

const insertChanges = new RowsStatement(
  "INSERT INTO tag_change (account_no, change_no, resource_no, changed_at, actor, action, tags_before, tags_after) VALUES ",
  8,
);

/** The outcomes of the writes that were carried out: all, or the first ones when the time ran out; at least one. */
export async function writeBatch(
  tx: Queryable,
  accountNo: number,
  writes: readonly TagWrite[],
  options: BatchOptions,
): Promise<{ outcomes: WriteOutcome[]; hasChanges: boolean }> {
  const startedAt = performance.now();
  const account = await tx.get<AccountRow>(
    sql`UPDATE tag_account SET next_change = next_change WHERE account_no = ${accountNo}
        RETURNING next_resource, next_key, next_value, next_change`,
  );
  if (account === undefined) throw new Error(`no tag account ${accountNo}`);
  const counters = { nextKey: account.next_key, nextValue: account.next_value };
  const batch = new Batch(
    tx,
    accountNo,
    account,
    new IndexDelta(tx, accountNo, counters, options.bitmapMinUses),
    options,
  );
  const outcomes: WriteOutcome[] = [];
  for (const write of writes) {
    outcomes.push(await batch.apply(write));
    if (performance.now() - startedAt > options.budgetMs) break;
  }
  await batch.finish();
  if (batch.hasChanges) {
    await tx.run(
      sql`UPDATE tag_account SET next_resource = ${batch.nextResource}, next_key = ${counters.nextKey},
          next_value = ${counters.nextValue}, next_change = ${batch.nextChange} WHERE account_no = ${accountNo}`,
    );
  }
  return { outcomes, hasChanges: batch.hasChanges };
}

class Batch {
  nextResource: number;
  nextChange: number;
  hasChanges = false;
  readonly #tx: Queryable;
  readonly #accountNo: number;
  readonly #index: IndexDelta;
  readonly #options: BatchOptions;
  readonly #changes: SqlValue[] = [];

  constructor(
    tx: Queryable,
    accountNo: number,
    account: AccountRow,
    index: IndexDelta,
    options: BatchOptions,
  ) {
    this.#tx = tx;
    this.#accountNo = accountNo;
    this.nextResource = account.next_resource;
    this.nextChange = account.next_change;
    this.#index = index;
    this.#options = options;
  }

  async apply(write: TagWrite): Promise<WriteOutcome> {
    const row = await findResourceRow(this.#tx, this.#accountNo, write.resource);
    const current = row === undefined ? null : toTaggedResource(row);
    const effect = effectOf(write, current, row?.updated_at ?? 0, this.#options);
    if (effect.kind === "changed") {
      this.hasChanges = true;
      const resourceNo = row?.resource_no ?? this.nextResource++;
      await this.#writeRow(write, row, resourceNo, effect.next);
      if (effect.hasNewTags) {
        await this.#index.change(resourceNo, write.resource.type, tagsOf(current), tagsOf(effect.next));
        this.#note(write, resourceNo, current, effect.next);
      }
    }
    return outcomeOf(write, effect, current);
  }

  async finish(): Promise<void> {
    await this.#index.flush();
    await insertChanges.run(this.#tx, this.#changes);
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

  #note(
    write: TagWrite,
    resourceNo: number,
    before: TaggedResource | null,
    after: TaggedResource | null,
  ): void {
    if (!this.#options.withHistory) return;
    const at = after?.updatedAt ?? this.#options.now;
    this.#changes.push(
      this.#accountNo,
      this.nextChange++,
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
