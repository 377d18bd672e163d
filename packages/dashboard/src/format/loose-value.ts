/** Values that people type without quotes: `5`, `true` and `null` are what they look like, everything else is text. */

export type LooseValue = string | number | boolean | null;

export function parseLooseValue(text: string): LooseValue {
  const value = parse(text);
  return value === null || ["string", "number", "boolean"].includes(typeof value)
    ? (value as LooseValue)
    : text;
}

/** Text that `parseLooseValue` reads as the value. Texts that look like another value are quoted. */
export function formatLooseValue(value: LooseValue): string {
  if (typeof value !== "string") return JSON.stringify(value);
  const isPlain = parseLooseValue(value) === value && value === value.trim() && !/[\r\n]/.test(value);
  return isPlain ? value : JSON.stringify(value);
}

/** `name=value` in each line. */
export function parsePairs(text: string): Record<string, LooseValue> {
  return Object.fromEntries(
    parseLines(text).map((line) => {
      const at = line.indexOf("=");
      if (at === -1) return [line, ""];
      return [line.slice(0, at).trim(), parseLooseValue(line.slice(at + 1).trim())];
    }),
  );
}

export function formatPairs(pairs: Readonly<Record<string, LooseValue>>): string {
  return Object.entries(pairs)
    .map(([name, value]) => `${name}=${formatLooseValue(value)}`)
    .join("\n");
}

/** The lines that are not empty. */
export function parseLines(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
