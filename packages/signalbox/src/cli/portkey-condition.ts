/** Queries of conditional configurations as conditions of dynamic routes. Throws an error with the reason where there is no counterpart. */
import { type Fields, isFields } from "../core/fields.ts";

/** Those that do not hold for a missing value, here as there. */
const SAME: ReadonlySet<string> = new Set(["$eq", "$gt", "$gte", "$lt", "$lte", "$in", "$regex"]);
/** They hold for a missing value there, and not here. */
const NEGATED: Readonly<Record<string, string>> = { $ne: "$eq", $nin: "$in" };

export interface ToldCondition {
  readonly condition: Fields;
  /** The query reads the model of the call, which is the name of the route here. */
  readonly readsModel: boolean;
}

export function toCondition(query: unknown): ToldCondition {
  let readsModel = false;
  const convert = (given: unknown): Fields => {
    if (!isFields(given)) throw new Error("a query must be an object");
    return joined(
      Object.entries(given).flatMap(([name, operand]): Fields[] => {
        if (name === "$and" || name === "$or") {
          if (!Array.isArray(operand)) throw new Error(`${name} must be a list`);
          return [{ [name]: operand.map(convert) }];
        }
        readsModel ||= name === "params.model";
        return toTests(pathOf(name), operand);
      }),
    );
  };
  return { condition: convert(query), readsModel };
}

function toTests(path: string, operand: unknown): Fields[] {
  if (!isFields(operand)) return [{ [path]: operand }];
  return Object.entries(operand).map(([name, value]) => {
    const negated = NEGATED[name];
    if (negated !== undefined) return { $not: { [path]: { [negated]: value } } };
    if (!SAME.has(name)) throw new Error(`the operator ${name} is not known`);
    return { [path]: { [name]: value } };
  });
}

function joined(conditions: readonly Fields[]): Fields {
  const [only, ...others] = conditions;
  return others.length === 0 ? (only ?? {}) : { $and: conditions };
}

function pathOf(name: string): string {
  if (name === "params.model") return "metadata.model";
  if (name.startsWith("metadata.")) return name;
  if (name.startsWith("params.")) return `body.${name.slice("params.".length)}`;
  throw new Error(`conditions on ${name} have no counterpart`);
}
