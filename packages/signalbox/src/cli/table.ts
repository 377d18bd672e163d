/** Formats rows for a terminal. Control characters are removed from cells. */
import { plainLine } from "../core/plain-text.ts";

/** Rows in aligned columns, or `whenEmpty` if there are none. */
export function table(
  columns: readonly string[],
  rows: readonly (readonly string[])[],
  whenEmpty: string,
): string {
  if (rows.length === 0) return `${whenEmpty}\n`;
  const lines = [columns.map((name) => name.toUpperCase()), ...rows].map((line) => line.map(plainLine));
  const widths = columns.map((_, i) => Math.max(...lines.map((line) => line[i]?.length ?? 0)));
  return lines
    .map(
      (line) =>
        `${line
          .map((cell, i) => cell.padEnd(widths[i] ?? 0))
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("");
}

/** One row as a line, for lists without an end. */
export function rowLine(cells: readonly string[]): string {
  return `${cells.map(plainLine).join("  ")}\n`;
}

/** A JSON value as a cell: text without quotes, anything else as JSON. */
export function toCell(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
