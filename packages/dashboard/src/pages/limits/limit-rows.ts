/** Limits and what is left of them as the rows of one table. */
import type { BudgetState, SpendRule } from "@signalbox/client";
import type { CreditOwner } from "./credit-dialog.tsx";

export interface LimitRow {
  readonly key: string;
  readonly name: string;
  /** Null for a limit of another owner, or one that is no longer set. */
  readonly rule: SpendRule | null;
  /** Null while nothing has been counted. */
  readonly budget: BudgetState | null;
  readonly owner: CreditOwner;
  /** Whose limit it is if the table has several owners. */
  readonly of: { readonly title: string; readonly to: string } | null;
  /** The first row of the rule, which has its buttons. */
  readonly isFirst: boolean;
  /** Values of the partition that are not listed. */
  readonly more: number;
}

/** Values of a partition that are listed, those that have used most. */
const MAX_PARTITIONS = 5;

export function limitRows(
  rules: readonly SpendRule[],
  states: readonly BudgetState[],
  owner: CreditOwner,
  of: LimitRow["of"] = null,
): LimitRow[] {
  const known = new Set(rules.map(({ id }) => id));
  const others = [...new Set(states.map(({ rule }) => rule))].filter((name) => !known.has(name));
  const all: readonly (readonly [string, SpendRule | null])[] = [
    ...rules.map((rule) => [rule.id ?? "", rule] as const),
    ...others.map((name) => [name, null] as const),
  ];
  return all.flatMap(([name, rule]) => {
    const own = states
      .filter((state) => state.rule === name)
      .sort((a, b) => b.used + b.reserved - (a.used + a.reserved));
    const shown = own.length === 0 ? [null] : own.slice(0, MAX_PARTITIONS);
    return shown.map((budget, i) => ({
      key: `${of?.to ?? ""} ${name} ${budget?.partition ?? ""}`,
      name,
      rule,
      budget,
      owner,
      of,
      isFirst: i === 0,
      more: i === shown.length - 1 ? Math.max(0, own.length - MAX_PARTITIONS) : 0,
    }));
  });
}
