/** `--quick`: many short rounds in place of few long ones, enough to compare two checkouts. */

export const isQuick: boolean = process.argv.includes("--quick");
const QUICK_ROUNDS = 6;
const QUICK_SHARE = 0.4;

export function roundsOf(full: number): number {
  return isQuick ? QUICK_ROUNDS : full;
}

/** How long one measurement takes, or how much it does. */
export function sized(full: number): number {
  return isQuick ? Math.round(full * QUICK_SHARE) : full;
}
