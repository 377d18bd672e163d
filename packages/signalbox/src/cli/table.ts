/** Formats rows for a terminal. Control characters are removed from cells. */
import { plainLine } from "../core/plain-text.ts";
import { cellWidth, fitCell, padCell } from "./cell-width.ts";

/** No column is shortened below this width. */
const MIN_WIDTH = 12;
const GAP = "  ";
/** People copy these: they are never shortened. */
const WHOLE = /^(id|.* id|name|key|path|url|token)$/i;

/** Width of the terminal while a result is rendered. Rendering is synchronous, so two commands in one process cannot mix. */
let available = Number.POSITIVE_INFINITY;

/** Tables that `render` creates are not wider than `width`, unless their shortest form is. */
export function renderWithin(width: number | undefined, render: () => string): string {
  available = width ?? Number.POSITIVE_INFINITY;
  try {
    return render();
  } finally {
    available = Number.POSITIVE_INFINITY;
  }
}

/** Rows in aligned columns, or `whenEmpty` if there are none. */
export function table(
  columns: readonly string[],
  rows: readonly (readonly string[])[],
  whenEmpty: string,
): string {
  if (rows.length === 0) return `${whenEmpty}\n`;
  const lines = [columns.map((name) => name.toUpperCase()), ...rows].map((line) => line.map(plainLine));
  const wanted = columns.map((_, i) =>
    lines.reduce((max, line) => Math.max(max, cellWidth(line[i] ?? "")), 0),
  );
  const widths = shrink(columns, wanted);
  return lines
    .map((line) => {
      const cells = line.map((cell, i) => padCell(fitCell(cell, widths[i] ?? 0), widths[i] ?? 0));
      return `${cells.join(GAP).trimEnd()}\n`;
    })
    .join("");
}

/** Shortens the widest columns until the row fits. */
function shrink(columns: readonly string[], wanted: readonly number[]): number[] {
  const widths = [...wanted];
  let excess = widths.reduce((sum, width) => sum + width + GAP.length, -GAP.length) - available;
  while (excess > 0) {
    let widest = -1;
    for (const [i, width] of widths.entries()) {
      if (width > MIN_WIDTH && !WHOLE.test(columns[i] ?? "") && width > (widths[widest] ?? 0)) widest = i;
    }
    if (widest === -1) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
    excess -= 1;
  }
  return widths;
}

/** One row as a line, for lists without an end. */
export function rowLine(cells: readonly string[]): string {
  return `${cells.map(plainLine).join("  ")}\n`;
}

/** A JSON value as a cell: text without quotes, anything else as JSON. */
export function toCell(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
