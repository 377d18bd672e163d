/**
 * Searches a response on its way from the provider, before it is translated, kept, cached or logged.
 *
 * | response                               | passes                                                            |
 * | -------------------------------------- | ----------------------------------------------------------------- |
 * | server-sent events, lines of JSON      | event by event, each when its texts are judged                    |
 * | Amazon's binary event stream           | the same                                                          |
 * | JSON, other text                       | when it is complete                                               |
 * | pictures, sound, films                 | at once, unless a rule refuses them (`on_media`)                  |
 * | compressed, too large, other bytes     | not, unless every rule lets it pass (`on_failure`)                |
 *
 * Invariants:
 * 1. No byte of a text goes on before its verdict; the head of a response that is searched as a whole neither.
 * 2. A response that is blocked ends with `BlockedResponse`, behind what may pass of it: the rest is not read.
 * 3. What has to be in memory counts in the share of the caller. Without room the attempt is refused.
 */
import { isAscii } from "node:buffer";
import { SignalboxError } from "@signalbox/protocol";
import { overloaded } from "../../core/overload.ts";
import {
  createUsageTap,
  type ResponseHead,
  splitAwsMessages,
  type UpstreamExchange,
  UpstreamFailure,
  type UpstreamHandler,
  type UsageTap,
} from "../../engines/relay/index.ts";
import type { CallShare } from "../step/call-share.ts";
import { readAwsDocument, writeAwsDocument } from "./aws-message.ts";
import { BlockedResponse } from "./blocked-response.ts";
import { type Findings, GuardrailBlock } from "./findings.ts";
import { GuardedEvents, type ReleasedEvent } from "./guarded-events.ts";
import { textOf } from "./json-document.ts";
import { searchText } from "./request-body.ts";
import { isMedia } from "./media.ts";
import type { PlaceRules } from "./rule-set.ts";
import { inOnePiece, inTurns, type Slices } from "./slices.ts";

/** A response that is searched as a whole must be in memory. */
const MAX_WHOLE_BYTES = 32 * 1024 * 1024;
/** What is made of the bytes is in memory beside them. */
const COPIES = 3;
/** Events that are not longer are not counted. */
const USUAL_LENGTH = 64 * 1024;
const NO_BYTES = Buffer.from("");
const BODY_HEADERS = /^(?:content-length|content-md5|digest|content-digest|repr-digest|etag|accept-ranges)$/i;

/** What may go on of a read, and why nothing follows; null if more may follow. */
interface Passed {
  readonly bytes: Buffer;
  readonly error: unknown;
}

/** What the bytes of a response become. */
interface BodySearch {
  push(chunk: Buffer, isLast: boolean): Passed;
}

export function guardResponse(
  rules: PlaceRules,
  findings: Findings,
  share: CallShare,
  send: (handler: UpstreamHandler) => UpstreamExchange,
  handler: UpstreamHandler,
): UpstreamExchange {
  let exchange: UpstreamExchange | null = null;
  let head: ResponseHead | null = null;
  let search: BodySearch | WholeSearch | null = null;
  let tap: UsageTap | null = null;
  let isOver = false;
  let received = 0;
  let passed = 0;
  const stop = (error: unknown) => {
    if (isOver) return;
    isOver = true;
    exchange?.abort();
    const own = error instanceof GuardrailBlock ? error.error : error;
    if (own instanceof SignalboxError && head !== null) {
      tap ??= createUsageTap(head.contentType);
      handler.onFailure(new BlockedResponse(own, head, tap, received - passed));
    } else if (error instanceof SignalboxError) {
      handler.onFailure(new UpstreamFailure("refused", error.message, error));
    } else handler.onFailure(new UpstreamFailure("broken", "the response could not be searched", error));
  };
  const pass = (arrived: ResponseHead | null, { bytes, error }: Passed, isLast: boolean) => {
    if (isOver) return;
    if (arrived !== null) handler.onHead(arrived);
    // The handler may have ended the exchange.
    if (isOver) return;
    passed += bytes.length;
    // What may pass does, also if the rest of the read may not.
    if (error === null ? bytes.length > 0 || isLast : bytes.length > 0)
      handler.onBody(bytes, error === null && isLast);
    if (error !== null) stop(error);
  };
  const guarded: UpstreamHandler = {
    onHead(arrived) {
      if (isOver) return;
      head = arrived;
      tap = createUsageTap(arrived.contentType);
      try {
        search = searchFor(rules, findings, share, arrived);
      } catch (error) {
        stop(error);
        return;
      }
      if (search === null) handler.onHead(arrived);
      else if (!(search instanceof WholeSearch)) handler.onHead(withoutLength(arrived));
    },
    onBody(chunk, isLast) {
      if (isOver || head === null) return;
      const arrived = head;
      received += chunk.length;
      if (chunk.length > 0) tap?.push(chunk);
      if (search === null) pass(null, { bytes: chunk, error: null }, isLast);
      else if (search instanceof WholeSearch) {
        const whole = search;
        try {
          whole.add(chunk);
        } catch (error) {
          stop(error);
          return;
        }
        if (whole.isPassing) {
          // It is too long to be searched, and all rules let it pass.
          search = null;
          pass(arrived, { bytes: whole.take(), error: null }, isLast);
        } else if (isLast)
          inTurns(
            whole.end(),
            received,
            share,
            (bytes) => pass(whole.isEdited ? withoutLength(arrived) : arrived, { bytes, error: null }, true),
            stop,
          );
      } else pass(null, search.push(chunk, isLast), isLast);
    },
    onReadEnd() {
      if (!isOver && !(search instanceof WholeSearch)) handler.onReadEnd();
    },
    onFailure(failure) {
      if (isOver) return;
      isOver = true;
      handler.onFailure(failure);
    },
  };
  const sent = send(guarded);
  exchange = sent;
  if (isOver) sent.abort();
  return {
    pause: () => sent.pause(),
    resume: () => sent.resume(),
    abort() {
      isOver = true;
      sent.abort();
    },
  };
}

/** Counts nothing: who has all bytes of a response has counted them. */
const COUNTED: CallShare = { holdMemory: () => true, beginWork: (_, piece) => piece() };

/** A response that is in memory as a whole, with masks. Throws `GuardrailBlock`, and an error if the bytes are no such response. */
export function searchResponseBytes(
  rules: PlaceRules,
  findings: Findings,
  bytes: Buffer,
  contentType: string,
): Buffer {
  const search = searchFor(rules, findings, COUNTED, { status: 200, contentType, rawHeaders: [] });
  if (search === null) return bytes;
  if (search instanceof WholeSearch) {
    search.add(bytes);
    return inOnePiece(search.end());
  }
  const found = search.push(bytes, true);
  if (found.error === null) return found.bytes;
  throw found.error instanceof Error ? found.error : new Error("the response could not be searched");
}

/** Null for a response without a body. */
function searchFor(
  rules: PlaceRules,
  findings: Findings,
  share: CallShare,
  head: Pick<ResponseHead, "status" | "contentType" | "rawHeaders">,
): BodySearch | WholeSearch | null {
  if (head.status === 204 || head.status === 304) return null;
  const encoding = headerOf(head, "content-encoding");
  if (encoding !== "" && encoding.toLowerCase() !== "identity") {
    findings.unread("response", rules, "it is compressed");
    return null;
  }
  const type = head.contentType.toLowerCase();
  // A picture as XML is text.
  if (/^(?:image\/(?!svg)|audio\/|video\/)/.test(type)) {
    findings.media("response", rules);
    return null;
  }
  if (type.startsWith("text/event-stream")) return new StreamSearch(rules, findings, share, SERVER_SENT);
  if (/^application\/(?:x-)?(?:ndjson|jsonl|jsonlines)\b/.test(type))
    return new StreamSearch(rules, findings, share, LINES);
  if (type.startsWith("application/vnd.amazon.eventstream")) return new AwsSearch(rules, findings, share);
  return new WholeSearch(rules, findings, share, /[/+]json\b/.test(type));
}

/** What a response keeps in memory, within the share of its caller. It is released with the response of the call. */
class KeptMemory {
  readonly #share: CallShare;
  readonly #free: number;
  #bytes = 0;

  /** `free`: so much is not counted. */
  constructor(share: CallShare, free = 0) {
    this.#share = share;
    this.#free = free;
  }

  /** Throws an error of the gateway if there is no room for so many bytes and what is made of them. */
  keep(length: number): void {
    const more = COPIES * length - this.#bytes;
    if (length <= this.#free || more <= 0) return;
    if (!this.#share.holdMemory(more))
      throw overloaded("There is no memory for the response of the provider");
    this.#bytes += more;
  }
}

class WholeSearch {
  isEdited = false;
  /** Too large to be searched, and all rules let it pass. */
  isPassing = false;
  readonly #rules: PlaceRules;
  readonly #findings: Findings;
  readonly #memory: KeptMemory;
  readonly #mustBeJson: boolean;
  #chunks: Buffer[] = [];
  #size = 0;

  constructor(rules: PlaceRules, findings: Findings, share: CallShare, mustBeJson: boolean) {
    this.#rules = rules;
    this.#findings = findings;
    this.#memory = new KeptMemory(share);
    this.#mustBeJson = mustBeJson;
  }

  /** Throws `GuardrailBlock`, or an error of the gateway. */
  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#size > MAX_WHOLE_BYTES) {
      this.#findings.unread("response", this.#rules, "it is too large to be searched");
      this.isPassing = true;
    } else this.#memory.keep(this.#size);
  }

  take(): Buffer {
    const [first = NO_BYTES, ...rest] = this.#chunks;
    this.#chunks = [];
    return rest.length === 0 ? first : Buffer.concat([first, ...rest]);
  }

  /** All of the response, searched. Throws `GuardrailBlock`. */
  *end(): Slices<Buffer> {
    const bytes = this.take();
    if (bytes.length === 0) return bytes;
    const text = textOf(bytes);
    if (text === null) {
      if (isMedia(bytes)) this.#findings.media("response", this.#rules);
      else this.#findings.unread("response", this.#rules, "it is no text");
      return bytes;
    }
    const edited = yield* searchText(this.#rules, this.#findings, text, this.#mustBeJson, "response");
    this.isEdited = edited !== null;
    return edited === null ? bytes : Buffer.from(edited);
  }
}

/** How events stand in a text. */
interface EventForm {
  /** Where the event that begins at `from` ends, with what separates it from the next; -1 if it has not ended. `hasReturns`: whether the text has a CR. */
  end(text: string, from: number, hasReturns: boolean): number;
  /** Whether the event has nothing but comments. */
  isComment(event: string): boolean;
  /** The document of an event; null if it has none. */
  read(event: string): string | null;
  /** The event with another document. */
  write(event: string, json: string): string;
}

/** Two ends of lines, which may differ. */
const BLANK = /(?:\r\n|\n|\r(?!\n)){2}/g;
const DATA_LINE = /^data:? ?/;

const SERVER_SENT: EventForm = {
  end(text, from, hasReturns) {
    if (!hasReturns) {
      const end = text.indexOf("\n\n", from);
      return end === -1 ? -1 : end + 2;
    }
    BLANK.lastIndex = from;
    const blank = BLANK.exec(text);
    return blank === null ? -1 : blank.index + blank[0].length;
  },
  isComment: (event) => event.startsWith(":") && !/[\r\n][^:\r\n]/.test(event),
  read(event) {
    // Nearly all events are one line.
    if (event.startsWith("data: ") && event.indexOf("\n") === event.length - 2 && !event.includes("\r")) {
      const line = event.slice("data: ".length, -2);
      return line === "" || line === "[DONE]" ? null : line;
    }
    const data = event.split(/\r\n|\n|\r/).filter((line) => line.startsWith("data"));
    const text = data.map((line) => line.replace(DATA_LINE, "")).join("\n");
    return text === "" || text === "[DONE]" ? null : text;
  },
  write(event, json) {
    const lines = event.split(/\r\n|\n|\r/).filter((line) => line !== "" && !line.startsWith("data"));
    return [...lines, ...json.split("\n").map((line) => `data: ${line}`), "", ""].join("\n");
  },
};

const LINES: EventForm = {
  end: (text, from) => {
    const end = text.indexOf("\n", from);
    return end === -1 ? -1 : end + 1;
  },
  isComment: () => false,
  read: (line) => (line.trim() === "" ? null : line.trim()),
  write: (_, json) => `${json}\n`,
};

/** The text of bytes that arrive in reads, without the mark of their order (a BOM). */
class TextReads {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  /** The last read may have ended inside of a character. */
  #isOpen = false;
  #isFirst = true;

  read(chunk: Buffer, isLast: boolean): string {
    // Without the decoder a short read takes a fraction of the time.
    const text =
      !this.#isOpen && isAscii(chunk)
        ? chunk.toString("latin1")
        : this.#decoder.decode(chunk, { stream: !isLast });
    if (chunk.length > 0) this.#isOpen = (chunk.at(-1) ?? 0) > 127;
    if (!this.#isFirst || text === "") return text;
    this.#isFirst = false;
    return text.startsWith("\ufeff") ? text.slice(1) : text;
  }
}

class StreamSearch implements BodySearch {
  readonly #events: GuardedEvents<string>;
  readonly #form: EventForm;
  readonly #text = new TextReads();
  readonly #memory: KeptMemory;
  #rest = "";
  readonly #rules: PlaceRules;
  readonly #findings: Findings;

  constructor(rules: PlaceRules, findings: Findings, share: CallShare, form: EventForm) {
    this.#events = new GuardedEvents(rules, findings, "response");
    this.#form = form;
    this.#memory = new KeptMemory(share, USUAL_LENGTH);
    this.#rules = rules;
    this.#findings = findings;
  }

  push(chunk: Buffer, isLast: boolean): Passed {
    const text = this.#rest + this.#text.read(chunk, isLast);
    const hasReturns = text.includes("\r");
    let released = "";
    let error: unknown = null;
    try {
      let from = 0;
      // The rest has no end, except that its last characters may be the beginning of one.
      const searched = Math.max(0, this.#rest.length - 4);
      const endFrom = (at: number) => this.#form.end(text, at, hasReturns);
      for (let end = endFrom(searched); end !== -1; end = endFrom(from)) {
        released += this.#pass(text.slice(from, end));
        from = end;
      }
      this.#rest = text.slice(from);
      if (this.#rest.length > MAX_WHOLE_BYTES)
        this.#findings.unread("response", this.#rules, "an event is too large to be searched");
      this.#memory.keep(this.#rest.length);
      if (isLast) {
        if (this.#rest !== "") released += this.#pass(this.#rest);
        released += this.#write(this.#events.end());
      }
    } catch (thrown) {
      error = thrown;
      released += this.#write(this.#events.flush());
    }
    return { bytes: released === "" ? NO_BYTES : Buffer.from(released), error };
  }

  #pass(event: string): string {
    // A sign of life does not wait for a text.
    if (this.#form.isComment(event)) return event;
    return this.#write(this.#events.push(event, this.#form.read(event)));
  }

  #write(events: readonly ReleasedEvent<string>[]): string {
    let text = "";
    for (const { frame, json } of events) text += json === null ? frame : this.#form.write(frame, json);
    return text;
  }
}

/** Shorter beginnings of a message are not checked. */
const AWS_PRELUDE = 12;

class AwsSearch implements BodySearch {
  readonly #events: GuardedEvents<Buffer>;
  readonly #memory: KeptMemory;
  /** What arrived of the next message, its length in bytes, and how long the message is; 0 while that is not known. */
  #pieces: Buffer[] = [];
  #size = 0;
  #needed = 0;

  constructor(rules: PlaceRules, findings: Findings, share: CallShare) {
    this.#events = new GuardedEvents(rules, findings, "response");
    this.#memory = new KeptMemory(share, USUAL_LENGTH);
  }

  push(chunk: Buffer, isLast: boolean): Passed {
    const released: Buffer[] = [];
    let error: unknown = null;
    try {
      for (const bytes of this.#split(chunk)) released.push(...this.#pass(bytes));
      if (isLast && this.#size > 0) throw new Error("the event stream ends inside a message");
      if (isLast) released.push(...this.#events.end().map(writeAws));
    } catch (thrown) {
      error = thrown;
      released.push(...this.#events.flush().map(writeAws));
    }
    return { bytes: released.length === 0 ? NO_BYTES : Buffer.concat(released), error };
  }

  /** The messages that are whole now. A long one is put together once, not with each read. */
  #split(chunk: Buffer): readonly Buffer[] {
    this.#pieces.push(chunk);
    this.#size += chunk.length;
    if (this.#size < this.#needed) {
      this.#memory.keep(this.#size);
      return [];
    }
    const { messages, rest } = splitAwsMessages(Buffer.concat(this.#pieces));
    this.#pieces = [rest];
    this.#size = rest.length;
    this.#needed = rest.length < AWS_PRELUDE ? 0 : rest.readUInt32BE(0);
    this.#memory.keep(rest.length);
    return messages;
  }

  #pass(bytes: Buffer): Buffer[] {
    const json = readAwsDocument(bytes);
    return this.#events.push(bytes, json === "" ? null : json).map(writeAws);
  }
}

function writeAws({ frame, json }: ReleasedEvent<Buffer>): Buffer {
  return json === null ? frame : writeAwsDocument(frame, json);
}

function headerOf({ rawHeaders }: Pick<ResponseHead, "rawHeaders">, wanted: string): string {
  for (let i = 0; i + 1 < rawHeaders.length; i += 2)
    if (rawHeaders[i]?.toLowerCase() === wanted) return rawHeaders[i + 1] ?? "";
  return "";
}

/** The length and the digest of what the provider sent. */
function withoutLength(head: ResponseHead): ResponseHead {
  const rawHeaders = head.rawHeaders.filter((_, i) => !BODY_HEADERS.test(head.rawHeaders[i - (i % 2)] ?? ""));
  return { ...head, rawHeaders };
}
