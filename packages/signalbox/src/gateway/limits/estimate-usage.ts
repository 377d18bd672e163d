/**
 * Estimates the tokens of a call: before it runs, for what it reserves, and afterwards, when the provider reported no usage.
 *
 * Text counts by its length. Pictures, documents and sound inside a request count by what models make of them, not by their bytes: a
 * picture of 1.5 MB is some hundred tokens. Only members that carry files are taken for files; a long text stays a text, whatever it
 * looks like.
 */
import { type RequestBody, visitStrings } from "../../engines/relay/index.ts";

/** Bytes of JSON per input token, low enough that the estimate is rarely too small. */
export const BYTES_PER_TOKEN = 3;
/** Output that is reserved for a call without an output limit. */
export const ASSUMED_OUTPUT_TOKENS = 4096;
const IMAGE_TOKENS = 1600;
const PAGE_TOKENS = 2000;
/** Of a PDF in base64; a page with text is smaller, a scanned one larger. */
const PAGE_BYTES = 60_000;
/** Sound and film in base64: ten to thirty tokens a second, some kilobytes a second. */
export const MEDIA_BYTES_PER_TOKEN = 1000;
/** Shorter strings count as text; below twice this size a body is not searched for files. */
const MIN_FILE_BYTES = 2048;

/** Members that carry files: chat (`url`, `file_data`, `data` of audio), messages (`data`), Responses (`image_url`), Gemini (`data`). */
const FILE_MEMBERS: ReadonlySet<string> = new Set([
  "data",
  "url",
  "image_url",
  "file_data",
  "file_url",
  "bytes",
  "b64_json",
]);

/** What a request is expected to make the model read. */
export function estimateInput(body: RequestBody): number {
  if (body.kind === "none") return 0;
  const bytes = body.kind === "whole" ? body.bytes : body.start;
  const length = body.kind === "whole" ? bytes.length : (body.length ?? bytes.length);
  if (length < 2 * MIN_FILE_BYTES) return Math.ceil(length / BYTES_PER_TOKEN);
  let fileBytes = 0;
  let fileTokens = 0;
  const onString = (member: string, start: number, end: number) => {
    if (!FILE_MEMBERS.has(member)) return;
    fileBytes += end - start;
    fileTokens += fileTokensOf(bytes, start, end);
  };
  const unfinished = visitStrings(bytes, MIN_FILE_BYTES, onString);
  let rest = length - bytes.length;
  // The end of a streamed body is not known; a body of this size consists of files, or exceeds what a model reads.
  if (rest > 0 && unfinished !== null && FILE_MEMBERS.has(unfinished.member)) {
    fileBytes += bytes.length - unfinished.start;
    fileTokens += fileTokensOf(bytes, unfinished.start, bytes.length + rest);
    rest = 0;
  }
  return Math.ceil((bytes.length - fileBytes + rest) / BYTES_PER_TOKEN) + fileTokens;
}

function fileTokensOf(bytes: Buffer, start: number, end: number): number {
  const begin = bytes.toString("latin1", start, start + 64);
  const type = /^data:([^;,]*)/.exec(begin)?.[1] ?? sniff(begin);
  if (type.startsWith("application/pdf")) return PAGE_TOKENS * Math.ceil((end - start) / PAGE_BYTES);
  if (type.startsWith("audio/") || type.startsWith("video/"))
    return Math.ceil((end - start) / MEDIA_BYTES_PER_TOKEN);
  if (type.startsWith("image/")) return IMAGE_TOKENS;
  // Some other file: a text in base64 has three bytes in four characters.
  return Math.ceil(((end - start) * 3) / 4 / BYTES_PER_TOKEN);
}

/** Beginnings of files in base64. */
const BEGINNINGS: readonly (readonly [string, string])[] = [
  ["JVBERi", "application/pdf"],
  ["/9j/", "image/jpeg"],
  ["iVBORw0KGgo", "image/png"],
  ["R0lGOD", "image/gif"],
  ["UklGR", "audio/wav"],
  ["SUQz", "audio/mpeg"],
  ["T2dnUw", "audio/ogg"],
  ["//", "audio/mpeg"],
  ["AAAA", "video/mp4"],
  ["GkXfo", "video/webm"],
];

function sniff(begin: string): string {
  // WebP is RIFF as well as WAV; the name of the format follows the length.
  if (
    begin.startsWith("UklGR") &&
    Buffer.from(begin.slice(0, 16), "base64").toString("latin1", 8, 12) === "WEBP"
  ) {
    return "image/webp";
  }
  return BEGINNINGS.find(([start]) => begin.startsWith(start))?.[1] ?? "";
}

/** Members of responses whose text the model wrote. */
const OUTPUT_MEMBERS: ReadonlySet<string> = new Set([
  "content",
  "text",
  "delta",
  "arguments",
  "partial_json",
  "reasoning",
  "reasoning_content",
  "thinking",
  "refusal",
  "response",
  "name",
]);
/** Bytes of visible text per token. */
const TEXT_BYTES_PER_TOKEN = 4;
/** A response of which nothing was kept: an event of a stream has about this many bytes, and one token. */
const EVENT_BYTES = 200;

/**
 * What a model wrote, by what passed through. `kept` is the beginning of the response, `length` the bytes of all of it. Streams with
 * many small events count at least one token for each event with text.
 */
export function estimateOutput(kept: Buffer, length: number): number {
  if (length === 0) return 0;
  if (kept.length === 0) return Math.ceil(length / EVENT_BYTES);
  let textBytes = 0;
  let texts = 0;
  visitStrings(kept, 1, (member, start, end) => {
    if (!OUTPUT_MEMBERS.has(member)) return;
    textBytes += end - start;
    texts += 1;
  });
  const tokens = Math.max(texts, Math.ceil(textBytes / TEXT_BYTES_PER_TOKEN));
  return Math.ceil((tokens * length) / kept.length);
}
