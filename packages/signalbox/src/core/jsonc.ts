/** JSON with comments and trailing commas, as `wrangler.jsonc` and `tsconfig.json` are written. */

/** Parses the text. Throws the `SyntaxError` of `JSON.parse`, whose positions are those of the original text. */
export function parseJsonc(text: string): unknown {
  return JSON.parse(toJson(text));
}

/** Replaces comments and trailing commas by spaces. Line breaks are kept, so positions in error messages stay right. */
function toJson(text: string): string {
  let json = "";
  let from = 0;
  /** Position in `json` of a comma after a value, after which only white space and comments followed; -1: none. */
  let comma = -1;
  /** The last character that is neither white space nor in a comment. */
  let last = "";
  const blank = (start: number, end: number) => {
    json += text.slice(from, start) + text.slice(start, end).replaceAll(/[^\r\n]/g, " ");
    from = end;
  };
  // A byte order mark is no white space in JSON.
  if (text.charCodeAt(0) === 0xfeff) blank(0, 1);
  for (let i = from; i < text.length;) {
    const char = text[i];
    if (char === "/" && (text[i + 1] === "/" || text[i + 1] === "*")) {
      const end = endOfComment(text, i);
      blank(i, end);
      i = end;
      continue;
    }
    if (char === '"') {
      comma = -1;
      last = char;
      i = endOfString(text, i);
      continue;
    }
    if (char === ",") {
      comma = ["", ",", "[", "{", ":"].includes(last) ? -1 : json.length + (i - from);
    } else if ((char === "}" || char === "]") && comma !== -1) {
      json += text.slice(from, i);
      from = i;
      json = `${json.slice(0, comma)} ${json.slice(comma + 1)}`;
      comma = -1;
    } else if (char !== undefined && !/\s/.test(char)) {
      comma = -1;
    }
    if (char !== undefined && !/\s/.test(char)) last = char;
    i += 1;
  }
  return json + text.slice(from);
}

function endOfComment(text: string, start: number): number {
  if (text[start + 1] === "/") {
    const end = text.slice(start).search(/[\r\n]/);
    return end === -1 ? text.length : start + end;
  }
  const end = text.indexOf("*/", start + 2);
  // An open comment is not blanked, so that JSON.parse reports it.
  return end === -1 ? start + 1 : end + 2;
}

/** The position after the closing quote, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i += 1) {
    if (text[i] === "\\") i += 1;
    else if (text[i] === '"') return i + 1;
  }
  return text.length;
}
