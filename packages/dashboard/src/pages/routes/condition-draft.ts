/** A condition with one path and one operator, as a form edits it. Other conditions are edited as JSON. */
import type { RouteElement } from "@signalbox/client";
import { formatLooseValue, type LooseValue, parseLooseValue } from "../../format/loose-value.ts";

export interface ConditionDraft {
  readonly path: string;
  readonly operator: Operator;
  /** Of `$in` and `$nin`: values separated by commas. */
  readonly value: string;
}

export const OPERATORS = {
  $eq: "is",
  $ne: "is not",
  $gt: "is greater than",
  $gte: "is at least",
  $lt: "is less than",
  $lte: "is at most",
  $in: "is one of",
  $nin: "is none of",
  $exists: "exists",
  $regex: "matches the pattern",
} as const;

export type Operator = keyof typeof OPERATORS;

/** Null for a condition that the form cannot show. */
export function toConditionDraft({ properties = {} }: RouteElement): ConditionDraft | null {
  const condition = properties["conditions"] ?? properties["condition"];
  const [only, ...more] = entriesOf(condition);
  if (only === undefined || more.length > 0 || only[0].startsWith("$")) return null;
  const [path, test] = only;
  if (isLoose(test)) return { path, operator: "$eq", value: formatLooseValue(test) };
  const [part, ...others] = entriesOf(test);
  if (part === undefined || others.length > 0 || !Object.hasOwn(OPERATORS, part[0])) return null;
  const operator = part[0] as Operator;
  const operand = part[1];
  if (operator === "$in" || operator === "$nin") {
    // A comma would split one value into two.
    if (!Array.isArray(operand) || !operand.every((one) => isLoose(one) && !String(one).includes(",")))
      return null;
    return { path, operator, value: operand.map((one) => formatLooseValue(one as LooseValue)).join(", ") };
  }
  if (!isLoose(operand)) return null;
  return { path, operator, value: operator === "$regex" ? String(operand) : formatLooseValue(operand) };
}

export function fromConditionDraft({ path, operator, value }: ConditionDraft): Record<string, unknown> {
  return { [path.trim()]: { [operator]: operandOf(operator, value) } };
}

function operandOf(operator: Operator, text: string): unknown {
  if (operator === "$regex") return text;
  if (operator === "$exists") return text.trim() !== "false";
  if (operator !== "$in" && operator !== "$nin") return parseLooseValue(text.trim());
  return text
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "")
    .map(parseLooseValue);
}

function isLoose(value: unknown): value is LooseValue {
  return value === null || ["string", "number", "boolean"].includes(typeof value);
}

function entriesOf(value: unknown): [string, unknown][] {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
}
