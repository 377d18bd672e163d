/** Formats rows for a terminal. Control characters are removed from cells. */
import { plainLine } from "../core/plain-text.ts";
import { cellWidth, fitCell, padCell } from "./cell-width.ts";
import { agoOf } from "./ago.ts";

/** No column is shortened below this width. */
const MIN_WIDTH = 12;
const GAP = "  ";
/** People copy these: they are neither shortened nor left out. */
const WHOLE = /^(id|.* id|name|key|path|url|token)$/i;
/** The first columns say what a row is about. */
const KEPT_COLUMNS = 2;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

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

/**
 * Rows in aligned columns, or `whenEmpty` if there are none. On a terminal, times are shown as "3 min ago", long cells are shortened, and columns that
 * still do not fit are left out, the last first: callers order columns by importance. `--wide` shows everything.
 */
export function table(
  columns: readonly string[],
  rows: readonly (readonly string[])[],
  whenEmpty: string,
): string {
  if (rows.length === 0) return `${whenEmpty}\n`;
  const isFitted = available !== Number.POSITIVE_INFINITY;
  const now = Date.now();
  const all = [columns.map((name) => name.toUpperCase()), ...rows].map((line) =>
    line.map((cell) => plainLine(isFitted && TIME.test(cell) ? agoOf(Date.parse(cell), now) : cell)),
  );
  const wanted = columns.map((_, i) => all.reduce((max, line) => Math.max(max, cellWidth(line[i] ?? "")), 0));
  const kept = fittingColumns(columns, wanted);
  const widths = shrink(
    kept.map((i) => columns[i] ?? ""),
    kept.map((i) => wanted[i] ?? 0),
  );
  const text = all
    .map((line) => {
      const cells = kept.map((column, i) =>
        padCell(fitCell(line[column] ?? "", widths[i] ?? 0), widths[i] ?? 0),
      );
      return `${cells.join(GAP).trimEnd()}\n`;
    })
    .join("");
  const hidden = columns.filter((_, i) => !kept.includes(i));
  return hidden.length === 0 ? text : `${text}(--wide also shows ${hidden.join(", ")})\n`;
}

/** The columns that fit when each is as narrow as it may become. */
function fittingColumns(columns: readonly string[], wanted: readonly number[]): number[] {
  const least = (i: number) =>
    WHOLE.test(columns[i] ?? "") ? (wanted[i] ?? 0) : Math.min(MIN_WIDTH, wanted[i] ?? 0);
  const kept = columns.map((_, i) => i);
  const isTooWide = () => kept.reduce((sum, i) => sum + least(i) + GAP.length, -GAP.length) > available;
  for (let i = columns.length - 1; i >= KEPT_COLUMNS && isTooWide(); i--)
    if (!WHOLE.test(columns[i] ?? "")) kept.splice(kept.indexOf(i), 1);
  return kept;
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
