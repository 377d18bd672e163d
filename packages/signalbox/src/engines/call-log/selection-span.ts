/** The span of time in which the rows of a selection can be, so that other days are not read. */
import { isUlid, ulidTime } from "../../core/ulid.ts";
import { DAY_MS } from "./day-files.ts";
import type { CallSelection } from "./selection.ts";

/** Days outside of this span have no matching rows. A filter on `createdAt` leaves a margin of a day, because the id decides the file. */
export function timeSpan(selection: CallSelection): { from: number; to: number } {
  let from = Number.NEGATIVE_INFINITY;
  let to = Number.POSITIVE_INFINITY;
  for (const { field, operator, values } of selection.filters) {
    if (field !== "id" && field !== "createdAt") continue;
    const slack = field === "id" ? 0 : DAY_MS;
    const times = values.flatMap((value) =>
      typeof value === "number" ? value : value !== null && isUlid(value) ? ulidTime(value) : [],
    );
    // An id that is not a ULID does not limit the span.
    if (times.length === 0 || times.length < values.length) continue;
    const isLower = operator === "gt" || operator === "gte" || operator === "eq";
    const isUpper = operator === "lt" || operator === "lte" || operator === "eq";
    if (isLower) from = Math.max(from, Math.min(...times) - slack);
    if (isUpper) to = Math.min(to, Math.max(...times) + slack);
  }
  return { from, to };
}
