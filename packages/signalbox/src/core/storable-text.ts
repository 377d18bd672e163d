/** Text that both databases can store and compare: PostgreSQL knows no NUL character. */
import { SignalboxError } from "@signalbox/protocol";

const NUL = "\0";
/** How JSON writes a NUL; the character itself is not valid JSON. */
const ESCAPED_NUL = "\\u0000";

/** Throws `invalid_request` with the name of the text. */
export function requireStorable(name: string, text: string): void {
  if (text.includes(NUL)) {
    throw new SignalboxError("invalid_request", {
      message: `${JSON.stringify(name)} contains a NUL character`,
    });
  }
}

/** Throws for parsed JSON that contains a NUL in a value or a name. `json` is its text, which nearly always tells at once. */
export function requireStorableJson(value: unknown, json: string): void {
  if (!json.includes(ESCAPED_NUL)) return;
  // No recursion: the client chooses the depth.
  const waiting: (readonly [name: string, value: unknown])[] = [["body", value]];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const [name, member] = next;
    if (typeof member === "string") requireStorable(name, member);
    if (typeof member !== "object" || member === null) continue;
    for (const [key, inner] of Object.entries(member)) {
      requireStorable("body", key);
      waiting.push([Array.isArray(member) ? name : key, inner]);
    }
  }
}
