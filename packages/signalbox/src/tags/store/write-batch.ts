/**
 * Executes writes of one account in one transaction: rows, history and index.
 *
 * Invariants:
 * 1. The row of the account is updated first. On PostgreSQL this locks the account, so the batches of one account never run concurrently.
 * 2. Each write sees the state after the writes before it. A refused write has no effect on the database or on other writes.
 * 3. The rows are read before the first write and written after the last one, with few statements: for PostgreSQL each is a round trip, and SQLite
 *    changes a page that several writes share once.
 * 4. A batch yields to the event loop after some milliseconds, in its transaction: other transactions wait, other requests do not.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { foldCase, parseCanonicalTags, type Tags } from "@signalbox/protocol";
import type { Queryable } from "../../database/database.ts";
import { sql, type SqlValue } from "../../core/sql.ts";
import { EMPTY_ETAG } from "./tag-write.ts";
import { IndexDelta } from "../../engines/tag-index/index.ts";
import { RowsStatement } from "../../core/rows-statement.ts";
import {
  findResourceRows,
  identityOf,
  type ResourceRow,
  type TaggedResource,
  toTaggedResource,
} from "./resource-row.ts";
import { effectOf, outcomeOf, type TagWrite, type WriteOutcome, type WriteRules } from "./tag-write.ts";

export interface BatchOptions extends WriteRules {
  /** False for a load of existing data, which is not a change by a user. */
  readonly withHistory: boolean;
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
/** After so many milliseconds a batch yields to the event loop. */
const TURN_MS = 4;

const storeResources = new RowsStatement(
  `INSERT INTO tag_resource (account_no, resource_no, type, id, zone_id, parent_id, name, name_folded, tags, etag, updated_at) VALUES `,
  11,
  ` ON CONFLICT (account_no, resource_no) DO UPDATE SET name = excluded.name, name_folded = excluded.name_folded, tags = excluded.tags,
    etag = excluded.etag, updated_at = excluded.updated_at`,
);

const insertChanges = new RowsStatement(
  "INSERT INTO tag_change (account_no, change_no, resource_no, changed_at, actor, action, tags_before, tags_after) VALUES ",
  8,
);

export async function writeBatch(
  tx: Queryable,
  accountNo: number,
  writes: readonly TagWrite[],
  options: BatchOptions,
): Promise<BatchResult> {
  const account = await tx.get<AccountRow>(
    sql`UPDATE tag_account SET next_change = next_change WHERE account_no = ${accountNo}
        RETURNING next_resource, next_key, next_value, next_change`,
  );
  if (account === undefined) throw new Error(`the account number ${accountNo} is not in tag_account`);
  const keys = writes.map(({ resource }) => resource);
  const rows = await findResourceRows(tx, accountNo, keys);
  const batch = new Batch(tx, accountNo, account, rows, options);
  const outcomes: WriteOutcome[] = [];
  let turnBegan = performance.now();
  for (const write of writes) {
    outcomes.push(batch.apply(write));
    if (performance.now() - turnBegan < TURN_MS) continue;
    await nextTurn();
    turnBegan = performance.now();
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
  /** As after the last write that was applied. */
  readonly #rows: Map<string, ResourceRow>;
  readonly #changedRows = new Set<string>();
  readonly #changes: SqlValue[] = [];

  constructor(
    tx: Queryable,
    accountNo: number,
    account: AccountRow,
    rows: Map<string, ResourceRow>,
    options: BatchOptions,
  ) {
    this.#tx = tx;
    this.#accountNo = accountNo;
    this.#nextResource = account.next_resource;
    this.#nextChange = account.next_change;
    this.#indexCounters = { nextKey: account.next_key, nextValue: account.next_value };
    this.#index = new IndexDelta(tx, accountNo, this.#indexCounters, options.bitmapMinUses);
    this.#rows = rows;
    this.#options = options;
  }

  apply(write: TagWrite): WriteOutcome {
    const identity = identityOf(write.resource);
    const row = this.#rows.get(identity);
    const current = row === undefined ? null : toTaggedResource(row);
    this.previous.push(current);
    const effect = effectOf(write, current, row?.updated_at ?? 0, this.#options);
    if (effect.kind === "changed") {
      this.hasChanges = true;
      const next = this.#nextRow(write, row, effect.next);
      this.#rows.set(identity, next);
      this.#changedRows.add(identity);
      if (effect.hasNewTags) {
        this.#index.change(next.resource_no, write.resource.type, tagsOf(current), tagsOf(effect.next));
        this.#recordChange(write, next.resource_no, current, effect.next);
      }
    }
    return outcomeOf(write, effect, current);
  }

  /** Writes the resources, the index, the history and the counters of the account. */
  async finish(): Promise<void> {
    await storeResources.run(this.#tx, this.#columns());
    await this.#index.flush();
    await insertChanges.run(this.#tx, this.#changes);
    if (!this.hasChanges) return;
    const { nextKey, nextValue } = this.#indexCounters;
    await this.#tx.run(
      sql`UPDATE tag_account SET next_resource = ${this.#nextResource}, next_key = ${nextKey},
          next_value = ${nextValue}, next_change = ${this.#nextChange} WHERE account_no = ${this.#accountNo}`,
    );
  }

  #nextRow(write: TagWrite, row: ResourceRow | undefined, next: TaggedResource | null): ResourceRow {
    const { type, id, zoneId, parentId } = write.resource;
    return {
      resource_no: row?.resource_no ?? this.#nextResource++,
      type,
      id,
      zone_id: zoneId,
      parent_id: parentId,
      name: next?.name ?? row?.name ?? id,
      tags: next?.tags ?? null,
      etag: next?.etag ?? EMPTY_ETAG,
      updated_at: next?.updatedAt ?? Math.max(this.#options.now, row?.updated_at ?? 0),
    };
  }

  #columns(): SqlValue[] {
    const columns: SqlValue[] = [];
    for (const identity of this.#changedRows) {
      const row = this.#rows.get(identity);
      if (row === undefined) continue;
      const { resource_no: no, type, id, zone_id: zone, parent_id: parent, name, tags, etag } = row;
      columns.push(
        this.#accountNo,
        no,
        type,
        id,
        zone,
        parent,
        name,
        foldCase(name),
        tags,
        etag,
        row.updated_at,
      );
    }
    return columns;
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
