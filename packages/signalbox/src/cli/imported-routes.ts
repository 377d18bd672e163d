/** Dynamic routes that an import creates. */
import type { RouteElement } from "@signalbox/client";

export interface ImportedRoute {
  readonly name: string;
  readonly elements: readonly RouteElement[];
}

const MAX_NAME = 64;

/** A name that a route may have and no other route has. */
export function routeName(name: string, taken: Set<string>): string {
  const plain = name.replaceAll(/[^\w.-]+/g, "-").replace(/^[^A-Za-z\d]+/, "");
  const base = (plain === "" ? "route" : plain).slice(0, MAX_NAME - 4);
  let free = base;
  for (let i = 2; taken.has(free); i++) free = `${base}-${i}`;
  taken.add(free);
  return free;
}

/** Percentages by weight; the last one is what is left. `targets` are the elements to which they lead. */
export function sharesOf(
  targets: readonly { readonly weight: number; readonly elementId: string }[],
): NonNullable<RouteElement["outputs"]> {
  const total = targets.reduce((sum, { weight }) => sum + weight, 0);
  const shares = targets.map(({ weight, elementId }, i) => {
    const percent = total === 0 ? 100 / targets.length : (100 * weight) / total;
    // Rounded down, so that the sum does not exceed 100; the text behind it tells equal percentages apart.
    const label = `${(Math.floor(percent * 100) / 100).toFixed(2)}% m${i + 1}`;
    return [i + 1 === targets.length ? "else" : label, { elementId }] as const;
  });
  return Object.fromEntries(shares);
}
