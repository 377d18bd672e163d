/** Searches the body of a request in whichever form it is: JSON, lines of JSON, a form with files, or text. What is none of these cannot be read. */
import type { RequestBody, UpstreamRequest } from "../../engines/relay/index.ts";
import type { Findings } from "./findings.ts";
import { readJsonSlices, readJsonTexts } from "../../engines/text-scan/index.ts";
import { DocumentSearch, textOf } from "./json-document.ts";
import { isMedia } from "./media.ts";
import type { PlaceRules } from "./rule-set.ts";
import { SLICE, type Slices } from "./slices.ts";
import { TextPiece } from "./text-channel.ts";

const PLACE = "prompt";
/** In these, ASCII is ASCII, and what is not UTF-8 is not read. */
const ASCII_CHARSET = /^(?:utf-?8|us-ascii|ascii|iso-8859-1|latin1|windows-1252)$/i;
/** Readers of forms may decode a part (RFC 7578 has no such header any more). */
const ENCODED_PART = /^content-transfer-encoding:\s*(?!\s|7bit|8bit|binary)/im;
/** Parameters that hold a credential of the provider. */
const CREDENTIAL =
  /^(?:(?:api|access|auth|subscription)?[_-]?(?:key|token)|sig|signature|x-amz-(?:signature|credential|security-token))$/i;

/** The request with masks; the same one if nothing changed. Throws `GuardrailBlock`. */
export function* searchRequest(
  rules: PlaceRules,
  findings: Findings,
  request: UpstreamRequest,
): Slices<UpstreamRequest> {
  const question = request.target.indexOf("?");
  if (question !== -1) yield* searchPairs(rules, findings, request.target.slice(question + 1), CREDENTIAL);
  const body = yield* searchBody(rules, findings, request);
  return body === request.body ? request : { ...request, body };
}

/** Names and values, except for values of names that `left` matches. */
function* searchPairs(
  rules: PlaceRules,
  findings: Findings,
  pairs: string,
  left: RegExp | null,
): Slices<void> {
  const search = new DocumentSearch(rules, findings, PLACE);
  for (const [name, value] of new URLSearchParams(pairs)) {
    yield* search.searchLong(new TextPiece(name, { isEditable: false }));
    if (left?.test(name) !== true) yield* search.searchLong(new TextPiece(value, { isEditable: false }));
  }
}

function* searchBody(
  rules: PlaceRules,
  findings: Findings,
  { body, headers }: UpstreamRequest,
): Slices<RequestBody> {
  if (body.kind === "none" || (body.kind === "whole" && body.bytes.length === 0)) return body;
  if (body.kind === "streamed") {
    findings.unread(PLACE, rules, "the body is too large to be searched");
    return body;
  }
  const encoding = valueOf(headers, "content-encoding");
  if (encoding !== "" && encoding.toLowerCase() !== "identity") {
    findings.unread(PLACE, rules, "the body is compressed");
    return body;
  }
  const found = yield* searchRequestBytes(rules, findings, body.bytes, valueOf(headers, "content-type"));
  return found === null ? body : { ...body, bytes: found };
}

/** The bytes with masks; null if nothing changed. Throws `GuardrailBlock`. */
export function* searchRequestBytes(
  rules: PlaceRules,
  findings: Findings,
  bytes: Buffer,
  type: string,
): Slices<Buffer | null> {
  const boundary = /^multipart\/[\w-]+\s*;(?:.*;)?\s*boundary="?([^";]{1,70})"?/i.exec(type)?.[1];
  if (boundary !== undefined) return yield* searchForm(rules, findings, bytes, boundary);
  const charset = /;\s*charset="?([\w-]+)/i.exec(type)?.[1] ?? "utf-8";
  if (!ASCII_CHARSET.test(charset)) {
    findings.unread(PLACE, rules, "its character set is not UTF-8");
    return null;
  }
  const text = textOf(bytes);
  if (text === null) {
    readOther(rules, findings, bytes);
    return null;
  }
  // A door may pass JSON on under any type, and providers read it whatever its type is.
  if (/^application\/x-www-form-urlencoded/i.test(type) && !/^\s*[{[]/.test(text)) {
    yield* searchPairs(rules, findings, text, null);
    return null;
  }
  const edited = yield* searchText(rules, findings, text, /json/i.test(type));
  return edited === null ? null : Buffer.from(edited);
}

/** JSON, lines of JSON or plain text. */
export function* searchText(
  rules: PlaceRules,
  findings: Findings,
  text: string,
  mustBeJson: boolean,
  place: "prompt" | "response" = PLACE,
  isSession = false,
): Slices<string | null> {
  const start = text.trimStart();
  const mayBeJson = start.startsWith("{") || start.startsWith("[") || mustBeJson;
  const isLong = text.length >= SLICE;
  const texts = !mayBeJson ? null : isLong ? yield* readJsonSlices(text) : readJsonTexts(text);
  if (texts !== null) {
    if (isLong) yield;
    return yield* new DocumentSearch(rules, findings, place, isSession).searchTexts(text, texts);
  }
  // It may be too deep to be read.
  if (mayBeJson && isJson(text)) return yield* new DocumentSearch(rules, findings, place).searchJson(text);
  const lines = mayBeJson ? jsonLines(text) : null;
  if (lines !== null) {
    let isEdited = false;
    const edited: string[] = [];
    let sliceLength = 0;
    for (const line of lines) {
      const other =
        line.trim() === "" ? null : yield* new DocumentSearch(rules, findings, place).searchJson(line);
      isEdited ||= other !== null;
      edited.push(other ?? line);
      sliceLength += line.length;
      if (sliceLength < SLICE) continue;
      yield;
      sliceLength = 0;
    }
    return isEdited ? edited.join("\n") : null;
  }
  // A reader that forgives mistakes would see the characters of escapes.
  if (mustBeJson || (mayBeJson && text.includes("\\u"))) {
    findings.unread(place, rules, "it is not valid JSON");
    return null;
  }
  const piece = new TextPiece(text);
  return (yield* new DocumentSearch(rules, findings, place).searchLong(piece)) ? piece.edited() : null;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function jsonLines(text: string): string[] | null {
  const lines = text.split("\n");
  return lines.length > 1 && lines.every((line) => line.trim() === "" || isJson(line)) ? lines : null;
}

/** Bytes that are no text. */
function readOther(rules: PlaceRules, findings: Findings, bytes: Buffer): void {
  if (isMedia(bytes)) findings.media(PLACE, rules);
  else findings.unread(PLACE, rules, "it contains a file that is no text");
}

const BLANK_LINE = Buffer.from("\r\n\r\n");
const LINE = Buffer.from("\r\n");

/** RFC 7578. What is not between two boundaries is searched with the part before it. */
function* searchForm(
  rules: PlaceRules,
  findings: Findings,
  bytes: Buffer,
  boundary: string,
): Slices<Buffer | null> {
  const delimiter = Buffer.from(`--${boundary}`);
  const parts: Buffer[] = [];
  let isEdited = false;
  let copied = 0;
  let start = bytes.indexOf(delimiter);
  // What stands before the first boundary could be the form of a reader that takes another boundary.
  if (start === -1 || start > LINE.length) {
    findings.unread(PLACE, rules, "the form cannot be read");
    return null;
  }
  while (start !== -1) {
    const next = bytes.indexOf(delimiter, start + delimiter.length);
    const headEnd = bytes.indexOf(BLANK_LINE, start);
    if (headEnd === -1 || next === -1) {
      // Behind the last boundary there is nothing but `--`.
      if (bytes.length - start > delimiter.length + 16)
        findings.unread(PLACE, rules, "the form cannot be read");
      break;
    }
    const from = headEnd + BLANK_LINE.length;
    const isFramed = next >= from && bytes.subarray(next - LINE.length, next).equals(LINE);
    const to = isFramed ? Math.max(from, next - LINE.length) : next;
    if (next < from) {
      findings.unread(PLACE, rules, "the form cannot be read");
      break;
    }
    const head = bytes.toString("utf8", start + delimiter.length, headEnd);
    yield* searchHead(rules, findings, head);
    const text = textOf(bytes.subarray(from, to));
    if (ENCODED_PART.test(head)) findings.unread(PLACE, rules, "a part of the form is encoded");
    else if (text === null) readOther(rules, findings, bytes.subarray(from, to));
    else {
      const edited = yield* searchText(rules, findings, text, false);
      if (edited !== null) {
        isEdited = true;
        parts.push(bytes.subarray(copied, from), Buffer.from(edited));
        copied = to;
      }
    }
    start = next;
  }
  return isEdited ? Buffer.concat([...parts, bytes.subarray(copied)]) : null;
}

/** The name of a file goes to the provider, too. */
function* searchHead(rules: PlaceRules, findings: Findings, head: string): Slices<void> {
  yield* new DocumentSearch(rules, findings, PLACE).searchLong(new TextPiece(head, { isEditable: false }));
}

function valueOf(headers: readonly string[], wanted: string): string {
  for (let i = 0; i + 1 < headers.length; i += 2)
    if (headers[i]?.toLowerCase() === wanted) return headers[i + 1] ?? "";
  return "";
}
