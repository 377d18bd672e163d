/** Rows as aligned columns for people; an empty list says so. Cells are shown without what a terminal would act on. */
import { plainLine } from "../core/plain-text.ts";

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

/** One row as a line of its own, for lists that go on. */
export function rowLine(cells: readonly string[]): string {
  return `${cells.map(plainLine).join("  ")}\n`;
}
