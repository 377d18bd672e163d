/** A row of the `call` table as a `CallRow`. */
import type { SqlValue } from "../../core/sql.ts";
import type { CallRow, GatewayRef } from "./call-log.ts";
import { CALL_COLUMNS, listColumns } from "./columns.ts";

/** What a read with `CALL_SELECT_LIST` returns. */
export interface StoredRow {
  readonly seq: number;
  readonly [sqlName: string]: SqlValue;
}

const COLUMNS = listColumns(CALL_COLUMNS);

export function toCallRow(row: StoredRow, { accountId, gatewayId }: GatewayRef): CallRow {
  const values = COLUMNS.map(({ name, sqlName, kind }) => [
    name,
    kind === "flag" ? row[sqlName] === 1 : row[sqlName],
  ]);
  return { accountId, gatewayId, ...Object.fromEntries(values) } as CallRow;
}
