/**
 * The query of a list or deletion of calls → filters of the call log.
 *
 * The `cloudflare` SDK writes a list of filters as repeated `filters.key`, `filters.operator` and `filters.value`, in the order of each
 * object's own properties and without saying where one filter ends: a filter ends where a property comes that it already has. The
 * spellings `filters[0][key]`, `filters[][value][]` and a JSON list in `filters` are understood too.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { CallFilter, CallOperator, CallSelection } from "../../engines/call-log/index.ts";
import { CONSTANT_KEYS, FILTER_KEYS, SIMPLE_FILTERS, type ValueKind } from "./filter-keys.ts";

const OPERATORS: ReadonlySet<string> = new Set(["eq", "neq", "contains", "lt", "gt"]);
const FILTER_PARAMETER =
  /^filters(?:\[\d*\])?(?:\.(key|operator|value)|\[(key|operator|value)\])(?:\[\d*\])?$/;
const MAX_FILTERS = 20;
const MAX_VALUES = 100;
const MAX_SEARCH = 256;
/** Fits no row: equal to none of no values. */
const IMPOSSIBLE: CallFilter = { field: "id", operator: "eq", values: [] };

interface WrittenFilter {
  readonly key: string;
  readonly operator: string;
  readonly values: readonly string[];
}

/** `others` are the parameters that belong to the route itself; any that nobody knows is refused, lest a typo widens a deletion. */
export function parseSelection(query: URLSearchParams, others: readonly string[]): CallSelection {
  const simple: CallFilter[] = [];
  for (const name of new Set(query.keys())) {
    if (name === "filters" || name === "search" || FILTER_PARAMETER.test(name) || others.includes(name))
      continue;
    const filter = Object.hasOwn(SIMPLE_FILTERS, name) ? SIMPLE_FILTERS[name] : undefined;
    if (filter === undefined) throw invalid(`unknown parameter "${name}"`);
    simple.push(simpleFilter(name, filter.key, filter.operator, query.getAll(name)));
  }
  const written = [...readFilterParameters(query), ...readJsonFilters(query.get("filters"))];
  if (written.length > MAX_FILTERS) throw invalid(`filters: at most ${MAX_FILTERS}`);
  const search = query.get("search") ?? "";
  if (search.length > MAX_SEARCH) throw invalid(`search: at most ${MAX_SEARCH} characters`);
  return { filters: pairMetadata([...simple, ...written.flatMap(toFilter)]), search };
}

function readFilterParameters(query: URLSearchParams): WrittenFilter[] {
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

function readJsonFilters(text: string | null): WrittenFilter[] {
  if (text === null) return [];
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch {
    throw invalid("filters: expected a JSON list");
  }
  if (!Array.isArray(list)) throw invalid("filters: expected a JSON list");
  return list.map((item: unknown) => {
    const { key, operator, value } = (item ?? {}) as Record<string, unknown>;
    const values: unknown[] = Array.isArray(value) ? value : value === undefined ? [] : [value];
    return {
      key: typeof key === "string" ? key : "",
      operator: typeof operator === "string" ? operator : "",
      values: values.map(writtenValue),
    };
  });
}

function writtenValue(value: unknown): string {
  if (value === null) return "";
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
    return String(value);
  throw invalid("filters: a value must be a text, a number, true, false or null");
}

function toFilter({ key, operator, values }: WrittenFilter): CallFilter[] {
  if (!OPERATORS.has(operator)) {
    throw invalid(`filters: operator must be one of ${[...OPERATORS].join(", ")}, found "${operator}"`);
  }
  if (values.length === 0) throw invalid(`filters: "${key}" needs a value`);
  if (values.length > MAX_VALUES) throw invalid(`filters: at most ${MAX_VALUES} values for "${key}"`);
  if (Object.hasOwn(CONSTANT_KEYS, key)) {
    return fitsConstant(CONSTANT_KEYS[key] ?? null, operator, values) ? [] : [IMPOSSIBLE];
  }
  const known = Object.hasOwn(FILTER_KEYS, key) ? FILTER_KEYS[key] : undefined;
  if (known === undefined) throw invalid(`filters: unknown key "${key}"`);
  return [
    {
      field: known.field,
      operator: operator as CallOperator,
      values: values.flatMap((text) => parseValue(key, known.kind, text)),
    },
  ];
}

function simpleFilter(
  name: string,
  key: string,
  operator: "eq" | "gte" | "lte",
  values: readonly string[],
): CallFilter {
  const known = FILTER_KEYS[key];
  if (known === undefined) throw invalid(`unknown parameter "${name}"`);
  const parsed = values.flatMap((text) => parseValue(name, known.kind, text));
  // Here the SDK has 0 for a negative opinion.
  return {
    field: known.field,
    operator,
    values: name === "feedback" ? parsed.map((v) => (v === 0 ? -1 : v)) : parsed,
  };
}

/** The SDK sends null as an empty value, which for a text may also mean the empty text. */
function parseValue(name: string, kind: ValueKind, text: string): (string | number | null)[] {
  if (kind === "text") return text === "" ? ["", null] : [text];
  if (text === "") return [null];
  if (kind === "boolean") {
    if (text === "true" || text === "1") return [1];
    if (text === "false" || text === "0") return [0];
    throw invalid(`${name}: expected true or false, found "${text}"`);
  }
  const number = Number(text);
  if (kind === "number") {
    if (Number.isFinite(number)) return [number];
    throw invalid(`${name}: expected a number, found "${text}"`);
  }
  const time = Number.isFinite(number) ? number : Date.parse(text);
  if (Number.isNaN(time))
    throw invalid(`${name}: expected a time (ISO 8601 or milliseconds), found "${text}"`);
  return [time];
}

function fitsConstant(constant: string | null, operator: string, values: readonly string[]): boolean {
  const isEqual = values.some((text) => (constant === null ? text === "" : text === constant));
  if (operator === "eq") return isEqual;
  return operator === "neq" && !isEqual;
}

/** Puts the i-th filter on a metadata value behind the i-th on a metadata key: together they speak of one entry. */
function pairMetadata(filters: readonly CallFilter[]): CallFilter[] {
  const keys = filters.filter((filter) => filter.field === "metadataKey");
  const values = filters.filter((filter) => filter.field === "metadataValue");
  const rest = filters.filter((filter) => filter.field !== "metadataKey" && filter.field !== "metadataValue");
  const pairs = keys.slice(0, values.length).flatMap((key, i) => [key, values[i] ?? IMPOSSIBLE]);
  return [...rest, ...pairs, ...values.slice(keys.length), ...keys.slice(values.length)];
}

function invalid(message: string): SignalboxError {
  return new SignalboxError("invalid_request", { message });
}
