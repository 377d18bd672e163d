/** The statements that write changes of many instances to the catalog: a few for all changes, because each is a round trip to PostgreSQL. */
import { RowsStatement } from "../../core/rows-statement.ts";
import type { SqlValue } from "../../core/sql.ts";
import type { Queryable } from "../../database/database.ts";
import { type InstanceRef, keyOf } from "./instance-ref.ts";

/** In a cluster, the epoch of this node for the instance. */
export interface Tenure {
  readonly node: string;
  readonly epoch: number;
}

export interface Change {
  readonly ref: InstanceRef;
  createdAt?: number;
  lastActiveAt?: number;
  nextDueAt?: number | null;
  /** Of `createdAt` and `nextDueAt`; undefined for a process that is alone. */
  tenure?: Tenure;
}

/** No node has the instance: those that look for due work find it. */
const NO_NODE = 0;

const COLUMNS = "account_id, agent, name, created_at, last_active_at, next_due_at";
const CONFLICT =
  " ON CONFLICT (account_id, agent, name) DO UPDATE SET last_active_at = excluded.last_active_at";
const ADD = new RowsStatement(`INSERT INTO agent_instance (${COLUMNS}) VALUES `, 6, CONFLICT);
const ADD_WITH_DUE = new RowsStatement(
  `INSERT INTO agent_instance (${COLUMNS}) VALUES `,
  6,
  `${CONFLICT}, next_due_at = excluded.next_due_at`,
);
/** An entry that exists belongs to an instance that is being destroyed, or to a later owner, which this write must not undo. */
const ADD_OF_NODE = new RowsStatement(
  `INSERT INTO agent_instance (${COLUMNS}, node, epoch) VALUES `,
  8,
  `${CONFLICT}, created_at = excluded.created_at, next_due_at = excluded.next_due_at, node = excluded.node, epoch = excluded.epoch
   WHERE agent_instance.epoch <= excluded.epoch OR agent_instance.created_at < excluded.created_at`,
);
const SET_ACTIVE = updateOf("last_active_at = CAST(v.column4 AS BIGINT)", 4);
const SET_DUE = updateOf("next_due_at = CAST(v.column4 AS BIGINT)", 4);
const OF_EPOCH = (column: string) => ` AND agent_instance.epoch <= CAST(v.${column} AS BIGINT)`;
const SET_DUE_OF_NODE = updateOf(
  "next_due_at = CAST(v.column4 AS BIGINT), node = CAST(v.column5 AS BIGINT), epoch = CAST(v.column6 AS BIGINT)",
  6,
  OF_EPOCH("column6"),
);
const DISOWN = updateOf(`node = ${NO_NODE}`, 4, OF_EPOCH("column4"));

export async function applyChanges(tx: Queryable, changes: readonly Change[]): Promise<void> {
  const added: SqlValue[] = [];
  const addedWithDue: SqlValue[] = [];
  const addedOfNode: SqlValue[] = [];
  const active: SqlValue[] = [];
  const due: SqlValue[] = [];
  const dueOfNode: SqlValue[] = [];
  for (const { ref, createdAt, lastActiveAt, nextDueAt, tenure } of changes.toSorted(compareRefs)) {
    const key = [ref.account, ref.agent, ref.name];
    if (createdAt !== undefined) {
      const row = [...key, createdAt, lastActiveAt ?? createdAt, nextDueAt ?? null];
      if (tenure !== undefined) addedOfNode.push(...row, tenure.node, tenure.epoch);
      else if (nextDueAt === undefined) added.push(...row);
      else addedWithDue.push(...row);
      continue;
    }
    if (lastActiveAt !== undefined) active.push(...key, lastActiveAt);
    if (nextDueAt === undefined) continue;
    if (tenure === undefined) due.push(...key, nextDueAt);
    else dueOfNode.push(...key, nextDueAt, tenure.node, tenure.epoch);
  }
  await ADD.run(tx, added);
  await ADD_WITH_DUE.run(tx, addedWithDue);
  await ADD_OF_NODE.run(tx, addedOfNode);
  await SET_ACTIVE.run(tx, active);
  await SET_DUE.run(tx, due);
  await SET_DUE_OF_NODE.run(tx, dueOfNode);
}

/** The instances have no node any more. */
export async function disown(
  tx: Queryable,
  owned: readonly { readonly ref: InstanceRef; readonly epoch: number }[],
): Promise<void> {
  const rows = owned
    .toSorted(compareRefs)
    .flatMap(({ ref, epoch }) => [ref.account, ref.agent, ref.name, epoch]);
  await DISOWN.run(tx, rows);
}

/** Changes columns of several instances; instances without an entry are left alone. The rows of `VALUES` have columns of these names. */
function updateOf(assignments: string, columns: number, condition = ""): RowsStatement {
  return new RowsStatement(
    `UPDATE agent_instance SET ${assignments} FROM (VALUES `,
    columns,
    `) AS v WHERE account_id = v.column1 AND agent = v.column2 AND name = v.column3${condition}`,
  );
}

function compareRefs(a: { readonly ref: InstanceRef }, b: { readonly ref: InstanceRef }): number {
  const [first, second] = [keyOf(a.ref), keyOf(b.ref)];
  return first < second ? -1 : first > second ? 1 : 0;
}
