const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function count(value: number): string {
  return Math.abs(value) < 10_000 ? plain.format(value) : compact.format(value);
}

/** Every digit, for counts that people compare. */
export function exactCount(value: number): string {
  return plain.format(value);
}

/** US dollars, of one amount (`moneyOf`: of a column); amounts below one cent keep two significant digits. */
export function money(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "$0";
  if (Math.abs(value) < 0.01) return `$${value.toPrecision(2)}`;
  return `$${value.toFixed(Math.abs(value) < 1 ? 3 : 2)}`;
}

/**
 * How a column shows its amounts: all with as many digits as the smallest one needs, so that they can be compared at a glance. An amount that is
 * far below the largest one is `<$0.01`, with the digits of the column.
 */
export function moneyOf(
  values: readonly (number | null | undefined)[],
): (value: number | null | undefined) => string {
  const amounts = values.flatMap((value) => (value == null || value === 0 ? [] : [Math.abs(value)]));
  const digits = Math.max(
    2,
    Math.min(digitsFor(Math.min(...amounts), 2), digitsFor(Math.max(...amounts), 6), 6),
  );
  const format = new Intl.NumberFormat("en", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  const least = 10 ** -digits;
  return (value) => {
    if (value == null) return "–";
    if (value === 0) return "$0";
    if (value > 0 && value < least / 2) return `<$${format.format(least)}`;
    return `$${format.format(value)}`;
  };
}

/** Digits after the point with which an amount has so many significant ones. */
function digitsFor(amount: number, significant: number): number {
  return Number.isFinite(amount) ? significant - 1 - Math.floor(Math.log10(amount)) : 2;
}

/** How a column shows its durations: all in milliseconds, or all in seconds if one takes ten of them. */
export function durationOf(
  values: readonly (number | null | undefined)[],
): (ms: number | null | undefined) => string {
  const max = Math.max(0, ...values.map((value) => value ?? 0));
  if (max >= 10_000) return (ms) => (ms == null ? "–" : `${(ms / 1000).toFixed(2)} s`);
  if (max < 10) return (ms) => (ms == null ? "–" : `${ms.toFixed(1)} ms`);
  return (ms) => (ms == null ? "–" : ms > 0 && ms < 0.5 ? "<1 ms" : `${plain.format(ms)} ms`);
}

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  if (ms < 10) return `${Number(ms.toFixed(1))} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  if (value < 1024 * 1024) return `${(value / 1024).toFixed(1)} KiB`;
  return `${(value / 1024 / 1024).toFixed(1)} MiB`;
}

/** "1 dead letter", "3 dead letters". */
export function plural(n: number, noun: string): string {
  return `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
}

export function share(part: number, whole: number): string {
  return whole === 0 ? "–" : `${((100 * part) / whole).toFixed(1)}%`;
}
