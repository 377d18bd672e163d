/**
 * The text that people wrote and models answered, from a stored body: JSON, or a stream of events with JSON.
 *
 * Members with the names of text are read with one pattern instead of a parser: a body may be cut, a stream consists of hundreds of small JSON
 * objects, and a search reads thousands of bodies. Deltas of a stream are joined, so that a phrase is found although it arrived in parts.
 */

const TEXT_MEMBERS =
  /"(?:content|text|delta|input|prompt|output_text|thinking|reasoning_content|arguments|partial_json|instructions|system|refusal|output)"\s*:\s*"((?:[^"\\]|\\.)*)/g;
/** The reason in an error body of any provider, and of the gateway. */
const ERROR_MEMBER = /"(?:message|detail|error)"\s*:\s*"((?:[^"\\]|\\.)*)/;
/** Where the last message of the user begins, in the requests of all dialects. */
const USER_ROLE = /"role"\s*:\s*"user"/g;
const EVENT = /^(?:data|event|id|retry):|\n(?:data|event):/;

/** Returns the text of a body; pieces of a stream are joined without, others with a line break. */
export function bodyText(body: string): string {
  const isStream = isEventStream(body);
  return piecesOf(body, 0, Number.POSITIVE_INFINITY).join(isStream ? "" : "\n");
}

/** Returns the beginning of the last message of the user, or of the first text of a request without roles. */
export function promptPreview(body: string, maxLength: number): string | null {
  const start = lastUserMessage(body);
  const [from, end] = start ?? [0, body.length];
  return shorten(piecesOf(body.slice(from, end), 0, maxLength).join("\n"), maxLength);
}

/** Returns the beginning of an answer, or of the reason of an error. */
export function answerPreview(body: string, maxLength: number): string | null {
  const pieces = piecesOf(body, 0, maxLength);
  if (pieces.length === 0) return shorten(unescapeText(ERROR_MEMBER.exec(body)?.[1] ?? ""), maxLength);
  return shorten(pieces.join(isEventStream(body) ? "" : "\n"), maxLength);
}

function isEventStream(body: string): boolean {
  return EVENT.test(body.slice(0, 200));
}

/** The content of a message may stand before or after its role. Null without a role. */
function lastUserMessage(body: string): readonly [number, number] | null {
  let last = -1;
  for (const match of body.matchAll(USER_ROLE)) last = match.index;
  if (last === -1) return null;
  const open = objectStart(body, last);
  return [open, objectEnd(body, open)];
}

/** The brace that opens the object around a position. Braces inside texts are rare before a role, and only change the preview. */
function objectStart(body: string, position: number): number {
  let depth = 0;
  for (let i = position; i >= 0; i--) {
    const code = body.charCodeAt(i);
    if (code === CLOSE) depth += 1;
    else if (code === OPEN && depth-- === 0) return i;
  }
  return 0;
}

function objectEnd(body: string, open: number): number {
  let depth = 0;
  let isText = false;
  for (let i = open; i < body.length; i++) {
    const code = body.charCodeAt(i);
    if (code === BACKSLASH) i += 1;
    else if (code === QUOTE) isText = !isText;
    else if (!isText && code === OPEN) depth += 1;
    else if (!isText && code === CLOSE && --depth === 0) return i + 1;
  }
  return body.length;
}

const OPEN = 0x7b;
const CLOSE = 0x7d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function piecesOf(body: string, from: number, maxLength: number): string[] {
  const pieces: string[] = [];
  let length = 0;
  TEXT_MEMBERS.lastIndex = from;
  for (;;) {
    const match = TEXT_MEMBERS.exec(body);
    if (match === null || length > maxLength) break;
    const piece = unescapeText(match[1] ?? "");
    if (piece === "") continue;
    pieces.push(piece);
    length += piece.length;
  }
  TEXT_MEMBERS.lastIndex = 0;
  return pieces;
}

function unescapeText(text: string): string {
  if (!text.includes("\\")) return text;
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch {
    // A body that was cut inside an escape.
    return text.replaceAll(/\\u[0-9a-fA-F]{0,3}$|\\$/g, "");
  }
}

function shorten(text: string, maxLength: number): string | null {
  const line = text.replaceAll(/\s+/g, " ").trim();
  if (line === "") return null;
  if (line.length <= maxLength) return line;
  const cut = line.slice(0, maxLength - 1);
  // A pair of surrogates is not split.
  return `${cut.isWellFormed() ? cut : cut.slice(0, -1)}…`;
}
