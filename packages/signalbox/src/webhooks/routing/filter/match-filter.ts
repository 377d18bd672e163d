/**
 * Compares a part of a delivery with a filter.
 *
 * Invariants:
 * 1. The number of comparisons is bounded, whatever the sender's payload is. A delivery that needs more is `undecided`.
 * 2. Only own properties are read. Values of the payload are compared, and never used as a filter.
 */
import { isDeepStrictEqual } from "node:util";
import {
  type Comparison,
  type Filter,
  INDEX,
  type ObjectFilter,
  type Operand,
  type Reference,
} from "./filter.ts";

/** About 10 ms at most. A filter of ten conditions on a list of a thousand items needs 10,000. */
const MAX_STEPS = 100_000;
/** Lists in lists. Filters are not as deep; payloads can be. */
const MAX_DEPTH = 64;

export type Verdict = "match" | "mismatch" | "undecided";

/** One condition and the value that it was compared with. */
export interface Finding {
  /** The place in the part, e.g. `data.items[1].sku`; empty for the part itself. */
  readonly at: string;
  readonly condition: string;
  readonly found: unknown;
  readonly holds: boolean;
}

export function matchFilter(filter: Filter, value: unknown): Verdict {
  return new Match(value, null).run(filter);
}

/** As `matchFilter`, with the conditions that decided. */
export function explainFilter(
  filter: Filter,
  value: unknown,
): { readonly verdict: Verdict; readonly findings: readonly Finding[] } {
  const findings: Finding[] = [];
  const verdict = new Match(value, findings).run(filter);
  return { verdict, findings };
}

class OutOfSteps extends Error {}

class Match {
  readonly #root: unknown;
  readonly #findings: Finding[] | null;
  /** Positions in the lists around the value that is being compared. */
  readonly #indexes: number[] = [];
  #steps = 0;

  constructor(root: unknown, findings: Finding[] | null) {
    this.#root = root;
    this.#findings = findings;
  }

  run(filter: Filter): Verdict {
    try {
      return this.#holds(filter, this.#root, "", 0) ? "match" : "mismatch";
    } catch (error) {
      // A range error is a full stack: two values of the payload were compared that are nested too deeply.
      if (error instanceof OutOfSteps || error instanceof RangeError) return "undecided";
      throw error;
    }
  }

  #holds(filter: Filter, value: unknown, at: string, depth: number): boolean {
    this.#steps += 1;
    if (this.#steps > MAX_STEPS || depth > MAX_DEPTH) throw new OutOfSteps();
    switch (filter.kind) {
      case "equals":
        return this.#equals(filter.value, value, at, depth);
      case "items":
        if (!Array.isArray(value)) return this.#note(at, () => "is a list", value, false);
        return filter.filters.every((item) => this.#someItem(item, value, at, depth));
      case "object":
        return this.#holdsObject(filter, value, at, depth);
    }
  }

  #equals(wanted: unknown, value: unknown, at: string, depth: number): boolean {
    if (Array.isArray(value))
      return this.#someItem({ kind: "equals", value: wanted as null }, value, at, depth);
    return this.#note(at, () => `= ${show(wanted)}`, value, isEqual(value, wanted));
  }

  /** A list meets a condition when one of its items does. Of the findings those of the item that meets it are kept. */
  #someItem(filter: Filter, items: readonly unknown[], at: string, depth: number): boolean {
    const before = this.#findings?.length ?? 0;
    for (let i = 0; i < items.length; i++) {
      this.#indexes.push(i);
      const holds = this.#holds(filter, items[i], this.#findings === null ? "" : `${at}[${i}]`, depth + 1);
      this.#indexes.pop();
      if (holds) return true;
      if (this.#findings !== null) this.#findings.length = before;
    }
    return this.#note(at, () => `has an item that meets ${describe(filter)}`, items, false);
  }

  #holdsObject(filter: ObjectFilter, value: unknown, at: string, depth: number): boolean {
    if (filter.not !== null && !this.#holdsNot(filter.not, value, at, depth)) return false;
    if (filter.reference !== null && !this.#holdsReference(filter.reference, value, at, depth)) return false;
    for (const { operator, operand } of filter.comparisons) {
      if (!this.#compare(operator, operand, value, at)) return false;
    }
    const { fields, any, all } = filter;
    const isEmpty = filter.comparisons.length === 0 && filter.not === null && filter.reference === null;
    if (fields.length === 0 && any === null && all === null)
      return !isEmpty || this.#note(at, () => "is an object", value, isObject(value));
    // One item has to meet them together.
    if (Array.isArray(value))
      return this.#someItem({ ...filter, comparisons: [], not: null, reference: null }, value, at, depth);
    if (any !== null && !this.#holdsAny(any, value, at, depth)) return false;
    if (all !== null && !all.every((one) => this.#holds(one, value, at, depth + 1))) return false;
    return fields.every(({ name, path, filter: inner }) => {
      const where = this.#findings === null ? "" : at === "" ? name : `${at}.${name}`;
      if (!isObject(value)) return this.#note(where, () => "exists", undefined, false);
      if (path.length === 1 || Object.hasOwn(value, name))
        return this.#holds(inner, own(value, name), where, depth + 1);
      return this.#holdsPath(path, inner, value, at, depth);
    });
  }

  /** `a.b`: the field `b` of the field `a`, which may be a list of objects. */
  #holdsPath(path: readonly string[], filter: Filter, value: unknown, at: string, depth: number): boolean {
    const [name = "", ...rest] = path;
    if (Array.isArray(value)) {
      return value.some((item, i) => {
        this.#indexes.push(i);
        const holds = this.#holdsPath(path, filter, item, `${at}[${i}]`, depth + 1);
        this.#indexes.pop();
        return holds;
      });
    }
    this.#steps += 1;
    if (this.#steps > MAX_STEPS || depth > MAX_DEPTH) throw new OutOfSteps();
    const where = at === "" ? name : `${at}.${name}`;
    const inner = isObject(value) ? own(value, name) : undefined;
    if (rest.length === 0) return this.#holds(filter, inner, where, depth + 1);
    return this.#holdsPath(rest, filter, inner, where, depth + 1);
  }

  #holdsNot(filter: Filter, value: unknown, at: string, depth: number): boolean {
    const before = this.#findings?.length ?? 0;
    const holds = this.#holds(filter, value, at, depth + 1);
    if (this.#findings !== null) this.#findings.length = before;
    return this.#note(at, () => `not ${describe(filter)}`, value, !holds);
  }

  #holdsAny(filters: readonly Filter[], value: unknown, at: string, depth: number): boolean {
    const before = this.#findings?.length ?? 0;
    for (const filter of filters) {
      if (this.#holds(filter, value, at, depth + 1)) return true;
      if (this.#findings !== null) this.#findings.length = before;
    }
    return this.#note(at, () => `one of ${filters.map(describe).join(" or ")}`, value, false);
  }

  #holdsReference(
    reference: Extract<Operand, { kind: "reference" }>,
    value: unknown,
    at: string,
    depth: number,
  ): boolean {
    const wanted = this.#resolve(reference.path);
    if (wanted === UNRESOLVED) return this.#note(at, () => `= ${reference.text}`, value, false);
    if (Array.isArray(value) && !isObject(wanted) && !Array.isArray(wanted))
      return this.#equals(wanted, value, at, depth);
    return this.#note(at, () => `= ${reference.text} (${show(wanted)})`, value, isEqual(value, wanted));
  }

  #compare(operator: Comparison, operand: Operand, value: unknown, at: string): boolean {
    this.#steps += 1;
    const wanted = operand.kind === "value" ? operand.value : this.#resolve(operand.path);
    const condition = () => `${operator} ${operand.kind === "value" ? show(wanted) : operand.text}`;
    const holds = wanted !== UNRESOLVED && holdsComparison(operator, value, wanted);
    return this.#note(at, condition, value, holds);
  }

  /** Null for a value that does not exist, as in the language's other implementations. */
  #resolve(path: Reference): unknown {
    let value = this.#root;
    let list = 0;
    for (const step of path) {
      const key = step === INDEX ? this.#indexes[list++] : step;
      if (key === undefined) return UNRESOLVED;
      if (Array.isArray(value)) value = typeof key === "number" ? value[key] : undefined;
      else value = isObject(value) ? own(value, String(key)) : undefined;
    }
    return value === undefined ? null : value;
  }

  #note(at: string, condition: () => string, found: unknown, holds: boolean): boolean {
    this.#findings?.push({ at, condition: condition(), found, holds });
    return holds;
  }
}

/** `$index` outside of a list. */
const UNRESOLVED = Symbol("unresolved");

function holdsComparison(operator: Comparison, value: unknown, wanted: unknown): boolean {
  if (operator === "$exist") return (value !== undefined) === wanted;
  // What does not exist meets no other condition: `$neq` is not a way to ask for absence.
  if (value === undefined) return false;
  switch (operator) {
    case "$eq":
      return isEqual(value, wanted);
    case "$neq":
      return !isEqual(value, wanted);
    case "$gt":
      return (order(value, wanted) ?? 0) > 0;
    case "$gte":
      return (order(value, wanted) ?? -1) >= 0;
    case "$lt":
      return (order(value, wanted) ?? 0) < 0;
    case "$lte":
      return (order(value, wanted) ?? 1) <= 0;
    case "$in":
      return isIn(value, wanted);
    case "$nin":
      return !isObject(value) && !isIn(value, wanted);
    case "$startsWith":
      return typeof value === "string" && texts(wanted).some((text) => value.startsWith(text));
    case "$endsWith":
      return typeof value === "string" && texts(wanted).some((text) => value.endsWith(text));
  }
}

/** Headers and queries are text, so a number equals its text. */
function isEqual(value: unknown, wanted: unknown): boolean {
  if (value === wanted) return true;
  if (typeof value === "number" && typeof wanted === "string") return isNumber(wanted, value);
  if (typeof value === "string" && typeof wanted === "number") return isNumber(value, wanted);
  if (typeof value !== "object" || typeof wanted !== "object") return false;
  return isDeepStrictEqual(value, wanted);
}

function isNumber(text: string, value: number): boolean {
  return text.trim() !== "" && Number(text) === value;
}

/** Below 0: the value is less. Null if the two have no order. */
function order(value: unknown, wanted: unknown): number | null {
  if (typeof value === "string" && typeof wanted === "string")
    return value < wanted ? -1 : value > wanted ? 1 : 0;
  const a = toNumber(value);
  const b = toNumber(wanted);
  return a === null || b === null ? null : a - b;
}

function toNumber(value: unknown): number | null {
  if (typeof value === "number") return value;
  if (typeof value !== "string" || value.trim() === "") return null;
  const number = Number(value);
  return Number.isNaN(number) ? null : number;
}

/** An item of a list, or a part of a text. */
function isIn(value: unknown, wanted: unknown): boolean {
  if (isObject(value)) return false;
  const items = Array.isArray(value) ? value : [value];
  if (Array.isArray(wanted)) return items.some((item) => wanted.some((one) => isEqual(item, one)));
  if (Array.isArray(value)) return items.some((item) => isEqual(item, wanted));
  return (
    typeof value === "string" &&
    (typeof wanted === "string" || typeof wanted === "number") &&
    value.includes(String(wanted))
  );
}

function texts(wanted: unknown): readonly string[] {
  const list = Array.isArray(wanted) ? wanted : [wanted];
  return list.filter((text) => typeof text === "string");
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function own(value: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

const MAX_SHOWN = 80;

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

function describe(filter: Filter): string {
  if (filter.kind === "equals") return show(filter.value);
  if (filter.kind === "items") return `[${filter.filters.map(describe).join(", ")}]`;
  const parts = [
    ...filter.comparisons.map(
      ({ operator, operand }) =>
        `${operator} ${operand.kind === "value" ? show(operand.value) : operand.text}`,
    ),
    ...filter.fields.map(({ name, filter: inner }) => `${name}: ${describe(inner)}`),
    ...(filter.any === null ? [] : [filter.any.map(describe).join(" or ")]),
    ...(filter.all === null ? [] : [filter.all.map(describe).join(" and ")]),
    ...(filter.not === null ? [] : [`not ${describe(filter.not)}`]),
    ...(filter.reference === null ? [] : [filter.reference.text]),
  ];
  const text = `{ ${parts.join(", ")} }`;
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
