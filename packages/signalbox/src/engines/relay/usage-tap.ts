/**
 * Reads a response body as it passes, and reports the tokens that the call used.
 *
 * A tap receives every chunk of one body in order, and is asked once, at the end. Its memory is bounded whatever the size of the body,
 * the result does not depend on where the body is split into chunks, and a tap never throws: a body that it cannot read has no usage.
 * Bodies must not be compressed.
 */
import {
  type FoundUsage,
  hasUsage,
  NOTHING_FOUND,
  readTailUsage,
  readUsage,
  scanModel,
  scanUsage,
  USAGE_MARKER,
} from "./read-usage.ts";
import { mergeUsage, type Usage } from "./usage.ts";
import { AwsMessageReader, readAwsPayload } from "./aws-messages.ts";
import { OPEN_BRACE } from "./json-scan.ts";

export interface TappedResponse {
  /** Null when the response states none: that is not a usage of zero. */
  readonly usage: Usage | null;
  /** The model that the response names; null when it names none, or when the caller did not ask. */
  readonly model: string | null;
}

export interface UsageTap {
  push(chunk: Buffer): void;
  end(): TappedResponse;
}

/** One JSON object per line, as Ollama streams. */
const LINE_TYPES: ReadonlySet<string> = new Set([
  "application/x-ndjson",
  "application/jsonl",
  "application/stream+json",
]);

const NO_TAP: UsageTap = { push: () => undefined, end: () => ({ usage: null, model: null }) };

/** A tap for one response body. Without `wantsModel` most JSON bodies are not parsed whole, and of most streams only the event with the usage. */
export function createUsageTap(contentType: string, wantsModel = true): UsageTap {
  const end = contentType.indexOf(";");
  const type = (end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase();
  if (type === "text/event-stream" || LINE_TYPES.has(type)) return new StreamTap(wantsModel);
  if (type === "application/vnd.amazon.eventstream") return new AwsTap(wantsModel);
  return type === "" || type.endsWith("json") ? new JsonTap(wantsModel) : NO_TAP;
}

/** Parsing this much takes about a millisecond; only responses with batches of embeddings are usually larger. */
const MAX_PARSED_BYTES = 256 * 1024;
const HEAD_BYTES = 4 * 1024;
/** Known providers write far less than this after the usage. */
const TAIL_BYTES = 64 * 1024;

/** Keeps a JSON body up to a bound; of a larger one its head, which names the model, and its tail, which contains the usage. */
class JsonTap implements UsageTap {
  readonly #wantsModel: boolean;
  #chunks: Buffer[] = [];
  #size = 0;
  #head: Buffer | null = null;

  constructor(wantsModel: boolean) {
    this.#wantsModel = wantsModel;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#head !== null) this.#trim();
    else if (this.#size > MAX_PARSED_BYTES) {
      this.#head = Buffer.from(Buffer.concat(this.#chunks).subarray(0, HEAD_BYTES));
      this.#trim();
    }
  }

  end(): TappedResponse {
    const chunks = this.#chunks;
    this.#chunks = [];
    if (chunks.length === 0) return { usage: null, model: null };
    const bytes = joined(chunks);
    if (!this.#wantsModel && this.#head === null) {
      const usage = readTailUsage(bytes);
      if (usage !== null) return { usage, model: null };
    }
    const found = this.#head === null ? parseOrScan(bytes, 0) : scanUsage(bytes);
    // The head of a large body is the better source: further down, `model` may be an argument of a tool.
    const model = (this.#head === null ? null : scanModel(this.#head)) ?? found.model;
    return { usage: found.usage, model };
  }

  /** Drops chunks that are entirely before the tail, and copies the end of a chunk that is larger than the tail. */
  #trim(): void {
    let first = this.#chunks[0];
    while (first !== undefined && this.#size - first.length >= TAIL_BYTES) {
      this.#size -= first.length;
      this.#chunks.shift();
      first = this.#chunks[0];
    }
    if (this.#chunks.length === 1 && first !== undefined && first.length > TAIL_BYTES) {
      this.#chunks[0] = Buffer.from(first.subarray(first.length - TAIL_BYTES));
      this.#size = TAIL_BYTES;
    }
  }
}

const NEWLINE = 0x0a;
/** The last event of OpenAI Responses repeats the whole response in one line; of a longer line the tail contains the usage. */
const MAX_LINE_BYTES = 1024 * 1024;
const LINE_TAIL_BYTES = 64 * 1024;
/** The object that names the model is the one that states the input, if the stream has such an object. */
const MODEL_MARKER = '"model';
const METADATA_MARKER = '"usageMetadata"';
const SEARCHES_MARKER = '"webSearchQueries"';
const PLACES_MARKER = '"maps"';
/** A stream that has not named its model by then does not name it; further lines are not copied to look for it. */
const MAX_LINES_BEFORE_FIRST = 64;

/**
 * Reads a stream of lines: server-sent events, or one JSON object per line. Two lines matter: the first one with a model or usage (with
 * Anthropic it states the input) and the last one with usage, because counts in a stream are running totals. All other bytes are
 * searched once, natively, for the key. Kept are the unfinished line (beyond a bound, its tail) and those two lines.
 */
class StreamTap implements UsageTap {
  readonly #wantsModel: boolean;
  #unfinished: Buffer[] = [];
  #unfinishedBytes = 0;
  /** Null until the first line with a model or usage. */
  #first: FoundUsage | null = null;
  #linesBeforeFirst = 0;
  #lastLine: Buffer | null = null;
  /** Gemini states its searches and places in an event of their own, sometimes before the last one. */
  #isGemini = false;
  #searchLine: Buffer | null = null;
  #placesLine: Buffer | null = null;

  constructor(wantsModel: boolean) {
    this.#wantsModel = wantsModel;
  }

  push(chunk: Buffer): void {
    const rest = this.#unfinishedBytes > 0 || this.#first === null ? this.#readLines(chunk) : chunk;
    const lastNewline = rest.lastIndexOf(NEWLINE);
    if (lastNewline !== -1) this.#search(rest.subarray(0, lastNewline));
    if (lastNewline + 1 < rest.length) this.#keep(rest.subarray(lastNewline + 1));
  }

  end(): TappedResponse {
    this.#readLine(this.#takeUnfinished());
    const first = this.#first ?? NOTHING_FOUND;
    const last = this.#lastLine === null ? NOTHING_FOUND : parseLine(this.#lastLine);
    this.#lastLine = null;
    const searches = this.#searchLine === null ? 0 : (parseLine(this.#searchLine).usage?.searches ?? 0);
    const places = this.#placesLine === null ? null : (parseLine(this.#placesLine).usage?.tools ?? null);
    this.#searchLine = null;
    this.#placesLine = null;
    if (first.usage === null && last.usage === null) {
      return { usage: null, model: first.model ?? last.model };
    }
    const usage = mergeUsage(first.usage, last.usage);
    const isStatedBefore = searches > usage.searches || (places !== null && usage.tools === null);
    return {
      usage: isStatedBefore
        ? { ...usage, searches: Math.max(searches, usage.searches), tools: usage.tools ?? places }
        : usage,
      model: last.model ?? first.model,
    };
  }

  /** Reads line by line until the first object is known and a line begins in this chunk; returns the rest of the chunk. */
  #readLines(chunk: Buffer): Buffer {
    let rest = chunk;
    while (this.#unfinishedBytes > 0 || this.#first === null) {
      const newline = rest.indexOf(NEWLINE);
      if (newline === -1) return rest;
      this.#keep(rest.subarray(0, newline));
      this.#readLine(this.#takeUnfinished());
      rest = rest.subarray(newline + 1);
    }
    return rest;
  }

  /** Searches whole lines, from the end, for one with usage. */
  #search(lines: Buffer): void {
    if (this.#isGemini) {
      this.#searchLine = lastLineWith(SEARCHES_MARKER, lines) ?? this.#searchLine;
      this.#placesLine = lastLineWith(PLACES_MARKER, lines) ?? this.#placesLine;
    }
    for (let at = lines.lastIndexOf(USAGE_MARKER, undefined, "latin1"); at !== -1;) {
      const start = lines.lastIndexOf(NEWLINE, at) + 1;
      const end = lines.indexOf(NEWLINE, at);
      const line = lines.subarray(start, end === -1 ? lines.length : end);
      if (hasUsage(line)) {
        this.#lastLine = Buffer.from(line);
        return;
      }
      if (start === 0) return;
      at = lines.lastIndexOf(USAGE_MARKER, start - 1, "latin1");
    }
  }

  #readLine(line: Buffer): void {
    const isUsage = hasUsage(line);
    if (isUsage && this.#first === null) this.#isGemini = line.includes(METADATA_MARKER, 0, "latin1");
    if (this.#isGemini && line.includes(SEARCHES_MARKER, 0, "latin1")) this.#searchLine = line;
    if (this.#isGemini && line.includes(PLACES_MARKER, 0, "latin1")) this.#placesLine = line;
    if (this.#first === null) {
      const isParsed = line.includes(OPEN_BRACE) && (this.#wantsModel || isUsage);
      const found = isParsed ? parseLine(line) : NOTHING_FOUND;
      const isFirst = !isParsed && !this.#wantsModel && line.includes(MODEL_MARKER, 0, "latin1");
      // A ping, or a comment that contains a brace, is not the first object.
      if (found.usage !== null || found.model !== null || isFirst) this.#first = found;
      else if (++this.#linesBeforeFirst === MAX_LINES_BEFORE_FIRST) this.#first = NOTHING_FOUND;
    }
    if (isUsage) this.#lastLine = line;
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
    const line = joined(this.#unfinished);
    this.#unfinished = [];
    this.#unfinishedBytes = 0;
    return line;
  }
}

/** A copy of the last of the lines that contains the marker. */
function lastLineWith(marker: string, lines: Buffer): Buffer | null {
  const at = lines.lastIndexOf(marker, undefined, "latin1");
  if (at === -1) return null;
  const end = lines.indexOf(NEWLINE, at);
  return Buffer.from(lines.subarray(lines.lastIndexOf(NEWLINE, at) + 1, end === -1 ? lines.length : end));
}

/** A message is one event of a stream, which is small; a longer one ends the reading. */
const MAX_AWS_MESSAGE_BYTES = 1024 * 1024;
/** The counts of every model that states none of its own, in the last event of `invoke-with-response-stream`. */
const INVOCATION_METRICS = "amazon-bedrock-invocationMetrics";

/** Reads the events inside the messages of Amazon Bedrock as the lines of a stream. */
class AwsTap implements UsageTap {
  readonly #lines: StreamTap;
  #messages: AwsMessageReader | null = new AwsMessageReader(MAX_AWS_MESSAGE_BYTES);
  #metrics: unknown;

  constructor(wantsModel: boolean) {
    this.#lines = new StreamTap(wantsModel);
  }

  push(chunk: Buffer): void {
    try {
      for (const message of this.#messages?.push(Buffer.from(chunk)) ?? []) {
        const event = readAwsPayload(message);
        this.#metrics = event[INVOCATION_METRICS] ?? this.#metrics;
        this.#lines.push(Buffer.from(`${JSON.stringify(event)}\n`));
      }
    } catch {
      // What was read before counts.
      this.#messages = null;
    }
  }

  end(): TappedResponse {
    const found = this.#lines.end();
    // The model's own counts tell more, such as the lifetime of cache writes; some models count only their input.
    if (found.usage !== null && found.usage.tokensOut > 0) return found;
    return { ...found, usage: readUsage({ usage: this.#metrics }).usage ?? found.usage };
  }
}

/** Parses the JSON from `start` on; bytes that are not JSON, or an incomplete part of it, are scanned. */
function parseOrScan(bytes: Buffer, start: number): FoundUsage {
  try {
    return readUsage(JSON.parse(bytes.toString("utf8", start)));
  } catch {
    return scanUsage(bytes);
  }
}

function parseLine(line: Buffer): FoundUsage {
  const start = line.indexOf(OPEN_BRACE);
  return start === -1 ? scanUsage(line) : parseOrScan(line, start);
}

function joined(chunks: readonly Buffer[]): Buffer {
  const [first] = chunks;
  return chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks);
}
