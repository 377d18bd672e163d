/** How deeply JSON is nested. `JSON.parse` accepts more than recursive code can handle, `JSON.stringify` included. */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING_BRACKET = 0x5b;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACKET = 0x5d;
const CLOSING_BRACE = 0x7d;

/** `json` is valid JSON. */
export function isNestedDeeperThan(maxDepth: number, json: string): boolean {
  let depth = 0;
  let isInText = false;
  for (let i = 0; i < json.length; i++) {
    const code = json.charCodeAt(i);
    if (isInText) {
      if (code === BACKSLASH) i += 1;
      else if (code === QUOTE) isInText = false;
    } else if (code === QUOTE) {
      isInText = true;
    } else if (code === OPENING_BRACKET || code === OPENING_BRACE) {
      depth += 1;
      if (depth > maxDepth) return true;
    } else if (code === CLOSING_BRACKET || code === CLOSING_BRACE) {
      depth -= 1;
    }
  }
  return false;
}
