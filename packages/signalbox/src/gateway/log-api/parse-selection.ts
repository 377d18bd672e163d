/**
 * Parses the query of a list or deletion of calls.
 *
 * The `cloudflare` SDK sends a list of filters as repeated `filters.key`, `filters.operator` and `filters.value`, in the order of each object's
 * properties and without a separator: a new filter begins with a property that the current one already has. The forms `filters[0][key]`,
 * `filters[][value][]` and a JSON list in `filters` are accepted, too.
 */
import { invalidRequest } from "../../core/invalid-request.ts";
import { parseKeepingDigits } from "../../core/large-integers.ts";
import type { CallFilter, CallOperator, CallSelection } from "../../engines/call-log/index.ts";
import { FILTER_KEYS, type ValueKind } from "./call-fields.ts";
import { CONSTANT_KEYS, SIMPLE_FILTERS } from "./simple-filters.ts";

const OPERATORS: ReadonlySet<string> = new Set(["eq", "neq", "contains", "lt", "gt"]);
const FILTER_PARAMETER =
  /^filters(?:\[\d*\])?(?:\.(key|operator|value)|\[(key|operator|value)\])(?:\[\d*\])?$/;
/** The parts of filters, as the SDK sends them: repeated for each filter. */
export const FILTER_PARTS = ["filters.key", "filters.operator", "filters.value"];
const MAX_FILTERS = 20;
const MAX_VALUES = 100;
const MAX_SEARCH = 256;
/** Matches no row. */
const IMPOSSIBLE: CallFilter = { field: "id", operator: "eq", values: [] };

interface FilterText {
  readonly key: string;
  readonly operator: string;
  readonly values: readonly string[];
}

/** `routeParameters` belong to the route. An unknown parameter is refused, because a misspelt filter would widen a deletion. */
export function parseSelection(query: URLSearchParams, routeParameters: readonly string[]): CallSelection {
  const known = new Set(["filters", "search", ...routeParameters]);
  const simple = [...new Set(query.keys())]
    .filter((name) => !known.has(name) && !FILTER_PARAMETER.test(name))
    .map((name) => simpleFilter(name, query.getAll(name)));
  for (const name of ["filters", "search"]) {
    if (query.getAll(name).length > 1) throw invalidRequest(`${name}: may stand only once`);
  }
  const listed = [...readFilterParameters(query), ...readJsonFilters(query.get("filters"))];
  if (listed.length > MAX_FILTERS) throw invalidRequest(`filters: at most ${MAX_FILTERS}`);
  const search = query.get("search") ?? "";
  if (search.length > MAX_SEARCH) throw invalidRequest(`search: at most ${MAX_SEARCH} characters`);
  return { filters: pairMetadata([...simple, ...listed.flatMap(toFilter)]), search };
}

function readFilterParameters(query: URLSearchParams): FilterText[] {
  const filters: { key?: string; operator?: string; values?: string[] }[] = [];
  let last = "";
  for (const [name, text] of query) {
    const match = FILTER_PARAMETER.exec(name);
    const property = match?.[1] ?? match?.[2];
    if (property === undefined) continue;
    let current = filters.at(-1);
    const isTaken =
      property === "value"
        ? current?.values !== undefined && last !== "value"
        : current?.[property as "key" | "operator"] !== undefined;
    if (current === undefined || isTaken) {
      current = {};
      filters.push(current);
    }
    if (property === "value") (current.values ??= []).push(text);
    else current[property as "key" | "operator"] = text;
    last = property;
  }
  return filters.map(({ key = "", operator = "", values = [] }) => ({ key, operator, values }));
}

function readJsonFilters(text: string | null): FilterText[] {
  if (text === null) return [];
  let list: unknown;
  try {
    list = parseKeepingDigits(text);
  } catch {
    throw invalidRequest("filters: expected a JSON list");
  }
  if (!Array.isArray(list)) throw invalidRequest("filters: expected a JSON list");
  return list.map((item: unknown) => {
    const { key, operator, value } = (item ?? {}) as Record<string, unknown>;
    const values: unknown[] = Array.isArray(value) ? value : value === undefined ? [] : [value];
    return {
      key: typeof key === "string" ? key : "",
      operator: typeof operator === "string" ? operator : "",
      values: values.map(valueText),
    };
  });
}

function valueText(value: unknown): string {
  if (value === null) return "";
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
    return String(value);
  throw invalidRequest("filters: a value must be a text, a number, true, false or null");
}

function toFilter({ key, operator, values }: FilterText): CallFilter[] {
  if (!OPERATORS.has(operator)) {
    throw invalidRequest(
      `filters: operator must be one of ${[...OPERATORS].join(", ")}, found "${operator}"`,
    );
  }
  if (values.length === 0) throw invalidRequest(`filters: "${key}" needs a value`);
  if (values.length > MAX_VALUES) throw invalidRequest(`filters: at most ${MAX_VALUES} values for "${key}"`);
  if (Object.hasOwn(CONSTANT_KEYS, key)) {
    return matchesConstant(CONSTANT_KEYS[key] ?? null, operator, values) ? [] : [IMPOSSIBLE];
  }
  const known = Object.hasOwn(FILTER_KEYS, key) ? FILTER_KEYS[key] : undefined;
  if (known === undefined) throw invalidRequest(`filters: unknown key "${key}"`);
  return [
    {
      field: known.field,
      operator: operator as CallOperator,
      values: values.flatMap((text) => parseValue(key, known.kind, text)),
    },
  ];
}

function simpleFilter(name: string, texts: readonly string[]): CallFilter {
  const simple = Object.hasOwn(SIMPLE_FILTERS, name) ? SIMPLE_FILTERS[name] : undefined;
  const known = simple && FILTER_KEYS[simple.key];
  if (simple === undefined || known === undefined) throw invalidRequest(`unknown parameter "${name}"`);
  const values = texts.flatMap((text) => parseValue(name, known.kind, text));
  return {
    field: known.field,
    operator: simple.operator,
    // In this parameter the SDK sends 0 for negative feedback.
    values: name === "feedback" ? values.map((value) => (value === 0 ? -1 : value)) : values,
  };
}

/** The SDK sends null as an empty value; for a text that may also be the empty text. */
function parseValue(name: string, kind: ValueKind, text: string): (string | number | null)[] {
  if (kind === "text") return text === "" ? ["", null] : [text];
  if (text === "") return [null];
  if (kind === "boolean") {
    if (text === "true" || text === "1") return [1];
    if (text === "false" || text === "0") return [0];
    throw invalidRequest(`${name}: expected true or false, found "${text}"`);
  }
  const number = Number(text);
  if (kind === "number") {
    if (Number.isFinite(number)) return [number];
    throw invalidRequest(`${name}: expected a number, found "${text}"`);
  }
  const time = Number.isFinite(number) ? number : Date.parse(text);
  if (Number.isNaN(time))
    throw invalidRequest(`${name}: expected a time (ISO 8601 or milliseconds), found "${text}"`);
  return [time];
}

function matchesConstant(constant: string | null, operator: string, values: readonly string[]): boolean {
  const isEqual = values.some((text) => (constant === null ? text === "" : text === constant));
  if (operator === "eq") return isEqual;
  return operator === "neq" && !isEqual;
}

/** Puts the i-th filter on a metadata value behind the i-th on a metadata key: the pair applies to one entry. */
function pairMetadata(filters: readonly CallFilter[]): CallFilter[] {
  const keys = filters.filter((filter) => filter.field === "metadataKey");
  const values = filters.filter((filter) => filter.field === "metadataValue");
  const rest = filters.filter((filter) => filter.field !== "metadataKey" && filter.field !== "metadataValue");
  const pairs = keys.slice(0, values.length).flatMap((key, i) => [key, values[i] ?? IMPOSSIBLE]);
  return [...rest, ...pairs, ...values.slice(keys.length), ...keys.slice(values.length)];
}
