/** Why a text is not a JSON object or array, with the line where it can be known; null if it is one. */
export function jsonProblem(text: string): string | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const position = /at position (\d+)/.exec(message)?.[1];
    if (position === undefined) return `Not valid JSON: ${message}`;
    const before = text.slice(0, Number(position)).split("\n");
    const reason = message.replace(/ in JSON at position.*| \(line \d+ column \d+\).*/, "");
    return `Not valid JSON in line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}: ${reason}`;
  }
  return typeof value === "object" && value !== null ? null : "The payload must be a JSON object or array.";
}
