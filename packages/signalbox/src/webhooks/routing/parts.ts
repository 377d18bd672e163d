/** The parts of a delivery that routes have filters for. */
import type { IncomingHttpHeaders } from "node:http";
import type { Filter } from "./filter/filter.ts";
import { explainFilter, type Finding, matchFilter, type Verdict } from "./filter/match-filter.ts";
import { FilterError, parseFilter } from "./filter/parse-filter.ts";

const PARTS = ["body", "headers", "query", "path"] as const;
type Part = (typeof PARTS)[number];

export interface DeliveryParts {
  readonly body: unknown;
  readonly headers: IncomingHttpHeaders | Readonly<Record<string, string>>;
  /** Parsed on first use. */
  readonly query: Readonly<Record<string, unknown>>;
  readonly path: string;
}

export interface PartFilter {
  readonly part: Part;
  readonly filter: Filter;
}

export function parseParts(when: Readonly<Partial<Record<Part, unknown>>>): PartFilter[] {
  return PARTS.flatMap((part) => {
    if (when[part] === undefined) return [];
    try {
      return [{ part, filter: parseFilter(when[part], part === "headers") }];
    } catch (error) {
      throw error instanceof FilterError ? new FilterError(`when.${part}: ${error.message}`) : error;
    }
  });
}

/** Null when all filters match; otherwise the part that does not, or on which the filter needs too much time. */
export function findMismatch(filters: readonly PartFilter[], parts: DeliveryParts): string | null {
  for (const { part, filter } of filters) {
    const verdict = matchFilter(filter, parts[part]);
    if (verdict === "undecided")
      return `the filter on the ${part} needs too many comparisons for this delivery`;
    if (verdict === "mismatch") return `the filter on the ${part} does not match`;
  }
  return null;
}

export interface Explanation {
  readonly verdict: Verdict;
  readonly parts: readonly {
    readonly part: Part;
    readonly verdict: Verdict;
    readonly findings: readonly Finding[];
  }[];
}

export function explainParts(filters: readonly PartFilter[], delivery: DeliveryParts): Explanation {
  const parts = filters.map(({ part, filter }) => ({ part, ...explainFilter(filter, delivery[part]) }));
  const decisive = parts.find(({ verdict }) => verdict !== "match");
  return { verdict: decisive?.verdict ?? "match", parts };
}

/** `target` is the path and query of the request; headers have lower-case names. */
export function createParts(
  body: unknown,
  headers: IncomingHttpHeaders | Readonly<Record<string, string>>,
  target: string,
): DeliveryParts {
  const at = target.indexOf("?");
  return {
    body,
    headers,
    path: at === -1 ? target : target.slice(0, at),
    get query() {
      return at === -1 ? {} : parseQuery(target.slice(at + 1));
    },
  };
}

function parseQuery(text: string): Record<string, unknown> {
  const query: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  for (const [name, value] of new URLSearchParams(text)) {
    const present = query[name];
    if (present === undefined) query[name] = value;
    else if (Array.isArray(present)) present.push(value);
    else query[name] = [present, value];
  }
  return query;
}
