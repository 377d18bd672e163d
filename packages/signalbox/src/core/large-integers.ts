/**
 * JSON whose integers are identifiers. Ids of 64 bits are larger than the integers that a JavaScript number distinguishes, so that two of them can be
 * equal after `JSON.parse`.
 */

const INTEGER = /^-?\d+$/;

/** As `JSON.parse`, but an integer that a number cannot hold becomes the text of its digits. Throws `RangeError` for JSON that is nested too deeply. */
export function parseKeepingDigits(json: string): unknown {
  return JSON.parse(json, (_key, value: unknown, context?: ReviverContext) => {
    const source = context?.source;
    return typeof value === "number" && isRounded(value) && source !== undefined && INTEGER.test(source)
      ? source
      : value;
  });
}

/** True for a number of parsed JSON that may differ from its text. */
export function isRounded(value: number): boolean {
  return Math.abs(value) > Number.MAX_SAFE_INTEGER;
}

/** The third argument of a reviver, which TypeScript's library does not describe yet. */
interface ReviverContext {
  readonly source?: string;
}
