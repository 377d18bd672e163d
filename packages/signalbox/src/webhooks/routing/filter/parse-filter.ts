/** Checks a filter when it is saved: operators, the types of their operands, and bounds on size and depth. Throws `FilterError`. */
import { type Comparison, COMPARISONS, type Filter, INDEX, type Operand, type Reference } from "./filter.ts";

/** Deeper and larger than any filter that a person writes; a delivery is compared with every filter of its source. */
const MAX_DEPTH = 16;
const MAX_NODES = 500;
const MAX_BYTES = 16 * 1024;

const OPERATORS: ReadonlySet<string> = new Set(COMPARISONS);
const REFERENCE = /^(\[(\d{1,9}|\$index)\]|[^.[\]]+)((\.[^.[\]]+)|(\[(\d{1,9}|\$index)\]))*$/;
const STEP = /\[(\d+|\$index)\]|[^.[\]]+/g;

export class FilterError extends Error {
  override readonly name = "FilterError";
}

/** `isHeaders`: names of fields ignore case. */
export function parseFilter(input: unknown, isHeaders = false): Filter {
  // The depth comes first: nothing recursive may see a filter that is too deep.
  requireDepth(input);
  if (Buffer.byteLength(JSON.stringify(input) ?? "") > MAX_BYTES)
    throw new FilterError(`a filter has at most ${MAX_BYTES} bytes`);
  return new Parser(isHeaders).parse(input, "");
}

function requireDepth(input: unknown): void {
  let level: unknown[] = [input];
  let count = 0;
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) throw new FilterError(`a filter is at most ${MAX_DEPTH} levels deep`);
    count += level.length;
    if (count > MAX_NODES) throw new FilterError(`a filter has at most ${MAX_NODES} parts`);
    level = level.flatMap((value) =>
      typeof value === "object" && value !== null ? Object.values(value) : [],
    );
  }
}

class Parser {
  readonly #isHeaders: boolean;

  constructor(isHeaders: boolean) {
    this.#isHeaders = isHeaders;
  }

  parse(input: unknown, at: string): Filter {
    if (isPrimitive(input)) return { kind: "equals", value: input };
    if (Array.isArray(input))
      return { kind: "items", filters: input.map((item, i) => this.parse(item, `${at}[${i}]`)) };
    if (typeof input !== "object" || input === null)
      throw new FilterError(`${place(at)}expected a JSON value`);
    return this.#parseObject(input as Readonly<Record<string, unknown>>, at);
  }

  #parseObject(input: Readonly<Record<string, unknown>>, at: string): Filter {
    const comparisons: { operator: Comparison; operand: Operand }[] = [];
    const fields: { name: string; path: readonly string[]; filter: Filter }[] = [];
    let any: readonly Filter[] | null = null;
    let all: readonly Filter[] | null = null;
    let not: Filter | null = null;
    let reference: Extract<Operand, { kind: "reference" }> | null = null;
    for (const [key, value] of Object.entries(input)) {
      const where = at === "" ? key : `${at}.${key}`;
      if (key === "$or") any = this.#parseList(value, where);
      else if (key === "$and") all = this.#parseList(value, where);
      else if (key === "$not") not = this.parse(value, where);
      else if (key === "$ref") reference = parseReference(value, where);
      else if (isComparison(key))
        comparisons.push({ operator: key, operand: parseOperand(key, value, where) });
      else if (key.startsWith("$"))
        throw new FilterError(
          `${place(at)}unknown operator ${key}; known are ${[...COMPARISONS, "$or", "$and", "$not", "$ref"].join(" ")}`,
        );
      else {
        const name = this.#isHeaders ? key.toLowerCase() : key;
        fields.push({ name, path: name.split("."), filter: this.parse(value, where) });
      }
    }
    return { kind: "object", comparisons, fields, any, all, not, reference };
  }

  #parseList(value: unknown, at: string): readonly Filter[] {
    if (!Array.isArray(value) || value.length === 0)
      throw new FilterError(`${place(at)}expected a list that is not empty`);
    return value.map((item, i) => this.parse(item, `${at}[${i}]`));
  }
}

function parseOperand(operator: Comparison, value: unknown, at: string): Operand {
  if (typeof value === "object" && value !== null && Object.hasOwn(value, "$ref")) {
    if (Object.keys(value).length > 1) throw new FilterError(`${place(at)}$ref stands alone`);
    return parseReference((value as { $ref: unknown }).$ref, at);
  }
  const problem = operandProblem(operator, value);
  if (problem !== null) throw new FilterError(`${place(at)}expected ${problem}`);
  return { kind: "value", value };
}

function operandProblem(operator: Comparison, value: unknown): string | null {
  switch (operator) {
    case "$eq":
    case "$neq":
      return null;
    case "$gt":
    case "$gte":
    case "$lt":
    case "$lte":
      return typeof value === "number" || typeof value === "string" ? null : "a number or text";
    case "$in":
    case "$nin":
      return typeof value === "string" ||
        typeof value === "number" ||
        (Array.isArray(value) && value.every(isPrimitive))
        ? null
        : "a list of values, or text";
    case "$startsWith":
    case "$endsWith":
      return typeof value === "string" ||
        (Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === "string"))
        ? null
        : "text, or a list of texts";
    case "$exist":
      return typeof value === "boolean" ? null : "true or false";
  }
}

function parseReference(value: unknown, at: string): Extract<Operand, { kind: "reference" }> {
  if (typeof value !== "string" || !REFERENCE.test(value))
    throw new FilterError(
      `${place(at)}expected the place of a value, e.g. data.items[0].id or items[$index].id`,
    );
  const path: Reference = [...value.matchAll(STEP)].map(([step, inner]) =>
    inner === undefined ? step : inner === "$index" ? INDEX : Number(inner),
  );
  return { kind: "reference", text: value, path };
}

function isComparison(key: string): key is Comparison {
  return OPERATORS.has(key);
}

function isPrimitive(value: unknown): value is string | number | boolean | null {
  return (
    value === null || typeof value === "string" || typeof value === "number" || typeof value === "boolean"
  );
}

function place(at: string): string {
  return at === "" ? "" : `${at}: `;
}
