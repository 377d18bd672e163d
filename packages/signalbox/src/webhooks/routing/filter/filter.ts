/**
 * A filter over one part of a delivery (body, headers, query or path), parsed from JSON and checked.
 *
 * The language is the one that Hookdeck and Outpost use: a value equals the same value; an object names fields, operators (`$eq`, `$gt`, …) and combinations
 * (`$or`, `$and`, `$not`); a list asks for an item for each of its members. `a.b` names a field of a field. No operator takes a pattern, so nothing
 * backtracks.
 */

export type Primitive = string | number | boolean | null;

export const COMPARISONS = [
  "$eq",
  "$neq",
  "$gt",
  "$gte",
  "$lt",
  "$lte",
  "$in",
  "$nin",
  "$startsWith",
  "$endsWith",
  "$exist",
] as const;
export type Comparison = (typeof COMPARISONS)[number];

/** A place in the same part of the delivery: names of fields, positions, and `$index` for the position of the list item that is being compared. */
export type Reference = readonly (string | number | typeof INDEX)[];
export const INDEX = Symbol("$index");

export type Operand =
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "reference"; readonly text: string; readonly path: Reference };

export type Filter =
  | { readonly kind: "equals"; readonly value: Primitive }
  | { readonly kind: "items"; readonly filters: readonly Filter[] }
  | ObjectFilter;

/** All of its members must hold. */
export interface ObjectFilter {
  readonly kind: "object";
  readonly comparisons: readonly { readonly operator: Comparison; readonly operand: Operand }[];
  readonly fields: readonly {
    readonly name: string;
    readonly path: readonly string[];
    readonly filter: Filter;
  }[];
  readonly any: readonly Filter[] | null;
  readonly all: readonly Filter[] | null;
  readonly not: Filter | null;
  /** `{ $ref: … }`: equals the value there. */
  readonly reference: Extract<Operand, { kind: "reference" }> | null;
}
