/**
 * Conditions of routes: an object in the manner of MongoDB, e.g. `{"metadata.plan": {"$in": ["pro", "team"]}}`. All members must hold.
 *
 * | operator                      | holds when the value                                                                  |
 * | ----------------------------- | ------------------------------------------------------------------------------------- |
 * | `$eq`, `$ne`                  | is, is not, the operand; a plain operand means `$eq`                                  |
 * | `$gt` `$gte` `$lt` `$lte`     | compares with the operand, as numbers or as texts                                     |
 * | `$in`, `$nin`                 | is, is not, one of the operands                                                       |
 * | `$exists`                     | is there (`true`), is not there (`false`)                                             |
 * | `$regex`                      | contains a match; RE2 syntax, within a budget of steps (`search-budget.ts`)            |
 * | `$and`, `$or`, `$not`         | all, one, not: of conditions                                                          |
 *
 * A value that is missing fulfils `$exists: false` and nothing else, whichever the operator: a request without `metadata.plan` is neither
 * on the plan `free` nor on another one. Headers are texts, so a text that is a number equals that number.
 */
import { checkPath, readFact, type RequestFacts } from "./route-facts.ts";
import { SearchBudget } from "./search-budget.ts";

export type Condition = (facts: RequestFacts) => boolean;

const MAX_DEPTH = 16;
const MAX_OPERANDS = 1000;
/** Callers send lists of any length; items beyond it are not compared. */
const MAX_ITEMS = 256;
/** No number is longer; to read megabytes of digits as a number takes milliseconds. */
const MAX_NUMBER = 400;

/** Where a part of a condition is: how deep, and in which route. */
interface Place {
  readonly depth: number;
  readonly budget: SearchBudget;
}

/** `budget`: of the route, for all its conditions. Throws an error with a text that says what is wrong. */
export function compileCondition(given: unknown, budget = new SearchBudget()): Condition {
  return compileMembers(given, { depth: 0, budget });
}

function compileMembers(given: unknown, place: Place): Condition {
  if (place.depth > MAX_DEPTH) throw tooDeep();
  const members = Object.entries(toObject(given, "a condition"));
  if (members.length === 0) throw new Error("a condition must not be empty");
  return allOf(members.map(([name, operand]) => compileMember(name, operand, place)));
}

function below({ depth, budget }: Place): Place {
  return { depth: depth + 1, budget };
}

function compileMember(name: string, operand: unknown, place: Place): Condition {
  switch (name) {
    case "$and":
      return allOf(toConditions(name, operand, place));
    case "$or": {
      const conditions = toConditions(name, operand, place);
      return (facts) => conditions.some((holds) => holds(facts));
    }
    case "$not": {
      const holds = compileMembers(operand, below(place));
      return (facts) => !holds(facts);
    }
  }
  if (name.startsWith("$")) throw new Error(`${name} is not an operator for conditions`);
  checkPath(name);
  const test = compileTest(name, operand, place);
  return (facts) => test(readFact(facts, name));
}

type Test = (value: unknown) => boolean;

function compileTest(path: string, operand: unknown, place: Place): Test {
  const isOperators =
    typeof operand === "object" &&
    operand !== null &&
    Object.keys(operand).some((key) => key.startsWith("$"));
  if (!isOperators) return compileOperator(path, "$eq", operand, false, place);
  if (place.depth > MAX_DEPTH) throw tooDeep();
  const tests = Object.entries(operand).map(([name, given]) => {
    if (name === "$options") {
      if (given === "i" && Object.hasOwn(operand, "$regex")) return () => true;
      throw new Error(`${path}: $options must be "i", beside $regex`);
    }
    return compileOperator(path, name, given, Object.hasOwn(operand, "$options"), place);
  });
  return (value) => tests.every((holds) => holds(value));
}

function compileOperator(
  path: string,
  name: string,
  given: unknown,
  ignoresCase: boolean,
  place: Place,
): Test {
  const { budget } = place;
  budget.addOperands(Array.isArray(given) ? given.length : 1);
  switch (name) {
    case "$eq": {
      const operand = toScalar(given, path);
      return ifThere((value) => isEqual(value, operand));
    }
    case "$ne": {
      const operand = toScalar(given, path);
      return ifThere((value) => !isEqual(value, operand));
    }
    case "$in": {
      const operands = toScalars(given, path);
      return ifThere((value) => operands.some((operand) => isEqual(value, operand)));
    }
    case "$nin": {
      const operands = toScalars(given, path);
      return ifThere((value) => !operands.some((operand) => isEqual(value, operand)));
    }
    case "$gt":
      return ordered(path, given, (order) => order > 0);
    case "$gte":
      return ordered(path, given, (order) => order >= 0);
    case "$lt":
      return ordered(path, given, (order) => order < 0);
    case "$lte":
      return ordered(path, given, (order) => order <= 0);
    case "$exists": {
      if (typeof given !== "boolean") throw new Error(`${path}: $exists must be true or false`);
      return (value) => (value !== undefined && value !== null) === given;
    }
    case "$regex": {
      const pattern = budget.compile(path, given, ignoresCase);
      return ifThere((value) => typeof value === "string" && budget.isFound(pattern, value));
    }
    case "$not": {
      const test = compileTest(path, given, below(place));
      return ifThere((value) => !test(value));
    }
    default:
      throw new Error(`${path}: ${name} is not an operator`);
  }
}

function ifThere(test: Test): Test {
  return (value) => value !== undefined && value !== null && test(value);
}

function isEqual(value: unknown, operand: Scalar): boolean {
  if (value === operand) return true;
  if (typeof value === "string" && typeof operand === "number") return toNumber(value) === operand;
  if (typeof value === "string" && typeof operand === "boolean") return value === String(operand);
  // A list equals what it contains, as in MongoDB: body.stop, metadata tags.
  return Array.isArray(value) && value.slice(0, MAX_ITEMS).includes(operand);
}

/** NaN for a text that is no number. */
function toNumber(text: string): number {
  return text === "" || text.length > MAX_NUMBER ? Number.NaN : Number(text);
}

function ordered(path: string, operand: unknown, holds: (order: number) => boolean): Test {
  if (typeof operand === "number") {
    return (value) => {
      const number = typeof value === "string" ? toNumber(value) : value;
      return typeof number === "number" && !Number.isNaN(number) && holds(number - operand);
    };
  }
  if (typeof operand !== "string") throw new Error(`${path}: the operand must be a number or text`);
  return (value) => typeof value === "string" && holds(value < operand ? -1 : value > operand ? 1 : 0);
}

function allOf(conditions: readonly Condition[]): Condition {
  return (facts) => conditions.every((holds) => holds(facts));
}

function toConditions(name: string, operand: unknown, place: Place): Condition[] {
  if (!Array.isArray(operand) || operand.length === 0 || operand.length > MAX_OPERANDS) {
    throw new Error(`${name} must be a list of conditions`);
  }
  return operand.map((one) => compileMembers(one, below(place)));
}

function tooDeep(): Error {
  return new Error(`conditions may be nested ${MAX_DEPTH} deep`);
}

type Scalar = string | number | boolean | null;

function toScalars(given: unknown, path: string): Scalar[] {
  if (!Array.isArray(given) || given.length > MAX_OPERANDS) {
    throw new Error(`${path}: the operand must be a list of at most ${MAX_OPERANDS} values`);
  }
  return given.map((one) => toScalar(one, path));
}

function toScalar(given: unknown, path: string): Scalar {
  if (given === null || ["string", "number", "boolean"].includes(typeof given)) return given as Scalar;
  throw new Error(`${path}: the operand must be text, a number, a boolean or null`);
}

function toObject(given: unknown, what: string): object {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new Error(`${what} must be an object`);
  }
  return given;
}
