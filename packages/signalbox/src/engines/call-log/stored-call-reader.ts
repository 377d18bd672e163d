/** A stored row as the call that usage is added up from. One object serves all rows. */
import { type NumberColumn, toSqlName } from "./columns.ts";
import type { CountedCall, CountedText } from "./batch-usage.ts";

export class StoredCallReader implements CountedCall {
  row: Readonly<Record<string, string | number | null>> = {};

  number(name: NumberColumn): number {
    return Number(this.row[toSqlName(name)] ?? 0);
  }

  text(name: CountedText): string | null {
    const value = this.row[toSqlName(name)] ?? null;
    return value === null ? null : String(value);
  }
}
