/**
 * Prices that the price package has wrong, as their makers publish them. A correction applies as long as the package has a rate that is known to be wrong,
 * so that a later list, of a release or of an address, precedes.
 */
import type { ModelPrice } from "@pydantic/genai-prices";

interface Correction {
  readonly packageId: string;
  readonly models: RegExp;
  /** Rates of input that are wrong; undefined: the package does not know the model. */
  readonly wrong: ReadonlySet<number | undefined>;
  readonly rates: (now: number) => ModelPrice;
}

const HOUR_MS = 3_600_000;
const BEIJING_MS = 8 * HOUR_MS;
/** Hours of UTC in which DeepSeek charges double, from Monday to Friday; the public holidays of China, which are exempt, are not known here. */
const PEAKS: readonly (readonly [from: number, to: number])[] = [
  [1, 4],
  [6, 10],
];

function deepSeekFlash(now: number): ModelPrice {
  const day = new Date(now + BEIJING_MS).getUTCDay();
  const hour = new Date(now).getUTCHours();
  const isPeak = day >= 1 && day <= 5 && PEAKS.some(([from, to]) => hour >= from && hour < to);
  const factor = isPeak ? 2 : 1;
  return { input_mtok: 0.15 * factor, cache_read_mtok: 0.003 * factor, output_mtok: 0.6 * factor };
}

const CORRECTIONS: readonly Correction[] = [
  {
    // The older names are served, and billed, as Flash.
    packageId: "deepseek",
    models: /^deepseek-(?:flash|v4-flash|chat|reasoner)/,
    wrong: new Set([undefined, 0.135, 0.27, 0.55, 0.14, 0.22, 0.44]),
    rates: deepSeekFlash,
  },
];

/** Null for a price that is not known to be wrong. `listed` is that of the package, null for a model that it does not know. */
export function correctedPrices(
  packageId: string,
  model: string,
  listed: ModelPrice | null,
  now: number,
): ModelPrice | null {
  const input = listed?.["input_mtok"];
  const known = typeof input === "object" ? Number.NaN : input;
  const found = CORRECTIONS.find(
    (one) => one.packageId === packageId && one.models.test(model) && one.wrong.has(known),
  );
  return found?.rates(now) ?? null;
}
