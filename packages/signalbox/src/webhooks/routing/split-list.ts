/** The items of a JSON list as the sender wrote them: serialising them again would change large integers. */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;

/** `json` is a valid list. */
export function splitList(json: string): string[] {
  const items: string[] = [];
  const end = json.lastIndexOf("]");
  let from = json.indexOf("[") + 1;
  let depth = 0;
  let isInText = false;
  for (let i = from; i < end; i++) {
    const code = json.charCodeAt(i);
    if (isInText) {
      if (code === BACKSLASH) i += 1;
      else if (code === QUOTE) isInText = false;
    } else if (code === QUOTE) isInText = true;
    else if (code === 0x5b || code === 0x7b) depth += 1;
    else if (code === 0x5d || code === 0x7d) depth -= 1;
    else if (code === COMMA && depth === 0) {
      items.push(json.slice(from, i).trim());
      from = i + 1;
    }
  }
  items.push(json.slice(from, end).trim());
  return items;
}
