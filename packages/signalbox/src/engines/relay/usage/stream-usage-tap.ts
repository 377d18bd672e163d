/**
 * Usage out of a stream of lines: server-sent events, or one JSON object a line.
 *
 * Only two lines matter: the first that holds an object (model; Anthropic's input counts) and the last that holds usage, since counts
 * in a stream are running totals. Every other byte is looked at once, by a native search for the word.
 *
 * Invariants:
 * 1. Kept at any time: the unfinished line (up to a bound, then its tail), the first object and the last line with usage.
 * 2. Where the stream is cut into chunks makes no difference.
 */
import { NO_USAGE } from "../../call-log/call-log.ts";
import { mergeUsage, readUsage, type UsageSighting } from "./read-usage.ts";
import { hasUsage, scanUsage } from "./scan-usage.ts";
import type { TappedResponse, UsageTap } from "./usage-tap.ts";

const NEWLINE = 0x0a;
const OPEN_BRACE = 0x7b;
const MARKER = '"usage';
/** The last event of OpenAI Responses repeats the whole answer in one line; beyond this its tail, where the usage stands, is enough. */
const MAX_LINE_BYTES = 1024 * 1024;
const LINE_TAIL_BYTES = 64 * 1024;
/** A stream that has not named its model by then will not; looking further would cost a copy of every line. */
const MAX_LINES_BEFORE_FIRST = 64;

const NOTHING: UsageSighting = { usage: null, model: null };

export class StreamUsageTap implements UsageTap {
  #unfinished: Buffer[] = [];
  #unfinishedBytes = 0;
  /** Null until the first line that holds an object with a model or usage. */
  #first: UsageSighting | null = null;
  #linesBeforeFirst = 0;
  #lastLine: Buffer | null = null;

  push(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let rest = bytes;
    if (this.#unfinishedBytes > 0 || this.#first === null) {
      rest = this.#finishLines(bytes);
    }
    const lastNewline = rest.lastIndexOf(NEWLINE);
    if (lastNewline !== -1) this.#search(rest.subarray(0, lastNewline));
    if (lastNewline + 1 < rest.length) this.#keep(rest.subarray(lastNewline + 1));
  }

  end(): TappedResponse {
    this.#line(this.#takeUnfinished());
    const first = this.#first ?? NOTHING;
    const last = this.#lastLine === null ? NOTHING : readLine(this.#lastLine);
    this.#lastLine = null;
    if (first.usage === null && last.usage === null) {
      return { usage: NO_USAGE, model: first.model ?? last.model };
    }
    return { usage: mergeUsage(first.usage, last.usage), model: last.model ?? first.model };
  }

  /** Handles line by line until a line starts at a chunk's own byte and the first object is known; returns what is left to search. */
  #finishLines(bytes: Buffer): Buffer {
    let rest = bytes;
    while (this.#unfinishedBytes > 0 || this.#first === null) {
      const newline = rest.indexOf(NEWLINE);
      if (newline === -1) return rest;
      this.#keep(rest.subarray(0, newline));
      this.#line(this.#takeUnfinished());
      rest = rest.subarray(newline + 1);
    }
    return rest;
  }

  /** Looks through whole lines for those with usage, the last one first. */
  #search(lines: Buffer): void {
    for (let at = lines.lastIndexOf(MARKER, undefined, "latin1"); at !== -1;) {
      const start = lines.lastIndexOf(NEWLINE, at) + 1;
      const end = lines.indexOf(NEWLINE, at);
      const line = lines.subarray(start, end === -1 ? lines.length : end);
      if (hasUsage(line)) {
        this.#lastLine = Buffer.from(line);
        return;
      }
      if (start === 0) return;
      at = lines.lastIndexOf(MARKER, start - 1, "latin1");
    }
  }

  #line(line: Buffer): void {
    if (this.#first === null) {
      const sighting = line.includes(OPEN_BRACE) ? readLine(line) : NOTHING;
      // An event about something else (a ping, a comment with a brace) does not count as the first object.
      if (sighting.usage !== null || sighting.model !== null) this.#first = sighting;
      else if (++this.#linesBeforeFirst === MAX_LINES_BEFORE_FIRST) this.#first = NOTHING;
    }
    if (hasUsage(line)) this.#lastLine = line;
  }

  #keep(part: Buffer): void {
    this.#unfinished.push(Buffer.from(part));
    this.#unfinishedBytes += part.length;
    if (this.#unfinishedBytes <= MAX_LINE_BYTES) return;
    const tail = Buffer.concat(this.#unfinished);
    this.#unfinished = [Buffer.from(tail.subarray(tail.length - LINE_TAIL_BYTES))];
    this.#unfinishedBytes = LINE_TAIL_BYTES;
  }

  #takeUnfinished(): Buffer {
    const [only] = this.#unfinished;
    const line = this.#unfinished.length === 1 && only !== undefined ? only : Buffer.concat(this.#unfinished);
    this.#unfinished = [];
    this.#unfinishedBytes = 0;
    return line;
  }
}

function readLine(line: Buffer): UsageSighting {
  const start = line.indexOf(OPEN_BRACE);
  if (start !== -1) {
    try {
      return readUsage(JSON.parse(line.toString("utf8", start)));
    } catch {
      // Cut at the bound, broken off, or several objects: fall through.
    }
  }
  return scanUsage(line);
}
