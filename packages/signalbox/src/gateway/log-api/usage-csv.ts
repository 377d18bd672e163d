/** Usage as comma-separated values. */
import { csvLine, type CsvValue } from "../../core/csv.ts";
import type { Reply } from "../../http/route.ts";

/** Members that are lists or objects have no column; `metadata` is spread. */
export function usageCsv(rows: readonly Readonly<Record<string, unknown>>[]): Reply {
  const flat = rows.map(flatten);
  const columns = [...new Set(flat.flatMap((row) => Object.keys(row)))];
  const lines = [csvLine(columns), ...flat.map((row) => csvLine(columns.map((name) => row[name])))];
  return {
    raw: { contentType: "text/csv; charset=utf-8", body: lines.join("") },
    headers: { "cache-control": "no-store", "content-disposition": 'attachment; filename="usage.csv"' },
  };
}

function flatten(row: Readonly<Record<string, unknown>>): Record<string, CsvValue> {
  const flat: Record<string, CsvValue> = {};
  for (const [name, value] of Object.entries(row)) {
    if ((name === "metadata" || name === "token_tags") && typeof value === "object" && value !== null) {
      for (const [key, item] of Object.entries(value)) flat[`${name}:${key}`] = item as CsvValue;
    } else if (value === null || typeof value !== "object") flat[name] = value as CsvValue;
  }
  return flat;
}
