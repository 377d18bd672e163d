/** What a database of PostgreSQL has: its tables, columns, references and sequences. */
import type { Client } from "pg";

export interface TableShape {
  readonly name: string;
  readonly columns: readonly string[];
}

/** The tables of the current schema, without partitions and those of extensions, in an order in which each follows those that it refers to. */
export async function readTables(client: Client, isWanted: (name: string) => boolean): Promise<TableShape[]> {
  const { rows: tables } = await client.query<{ name: string; columns: string[] }>(
    `SELECT c.relname AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
     WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p') AND NOT c.relispartition
       AND a.attnum > 0 AND NOT a.attisdropped
       AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
     GROUP BY c.relname ORDER BY c.relname`,
  );
  const { rows: references } = await client.query<{ child: string; parent: string }>(
    `SELECT c.relname AS child, p.relname AS parent FROM pg_constraint f
     JOIN pg_class c ON c.oid = f.conrelid JOIN pg_class p ON p.oid = f.confrelid JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE f.contype = 'f' AND n.nspname = current_schema() AND c.oid <> p.oid`,
  );
  return inOrder(
    tables.filter(({ name }) => isWanted(name)),
    references,
  );
}

export function inOrder(
  tables: readonly TableShape[],
  references: readonly { readonly child: string; readonly parent: string }[],
): TableShape[] {
  const waiting = new Map(tables.map((table) => [table.name, table]));
  const ordered: TableShape[] = [];
  while (waiting.size > 0) {
    const free = [...waiting.values()].filter(
      ({ name }) => !references.some(({ child, parent }) => child === name && waiting.has(parent)),
    );
    if (free.length === 0) throw new Error(`tables refer to each other: ${[...waiting.keys()].join(", ")}`);
    for (const table of free) {
      waiting.delete(table.name);
      ordered.push(table);
    }
  }
  return ordered;
}

/** The last number of each sequence that was used. Newer than the snapshot of a transaction, which does no harm. */
export async function readSequences(client: Client): Promise<Record<string, string>> {
  const { rows } = await client.query<{ name: string; last: string }>(
    `SELECT sequencename AS name, last_value::text AS last FROM pg_sequences
     WHERE schemaname = current_schema() AND last_value IS NOT NULL`,
  );
  return Object.fromEntries(rows.map(({ name, last }) => [name, last]));
}
