/**
 * Searches a response on its way from the provider, before it is translated, kept, cached or logged.
 *
 * | response                               | passes                                                            |
 * | -------------------------------------- | ----------------------------------------------------------------- |
 * | server-sent events, lines of JSON      | event by event, each when its texts are judged                    |
 * | Amazon's binary event stream           | the same                                                          |
 * | JSON, other text                       | when it is complete                                               |
 * | compressed, too large, no text         | not, unless every rule lets it pass                               |
 *
 * Invariants:
 * 1. No byte of a text goes on before its verdict; the head of a response that is searched as a whole neither.
 * 2. A response that is blocked ends with `BlockedResponse`: the rest is not read.
 */
import type { SignalboxError } from "@signalbox/protocol";
import {
  createUsageTap,
  editAwsMessage,
  type ResponseHead,
  splitAwsMessages,
  type UpstreamExchange,
  UpstreamFailure,
  type UpstreamHandler,
  type UsageTap,
} from "../../engines/relay/index.ts";
import { type Findings, GuardrailBlock } from "./findings.ts";
import { GuardedEvents, type ReleasedEvent } from "./guarded-events.ts";
import { textOf } from "./json-document.ts";
import { searchText } from "./request-body.ts";
import type { PlaceRules } from "./rule-set.ts";

/** The exchange ends because a rule refuses the response. What it used is charged. */
export class BlockedResponse extends UpstreamFailure {
  readonly error: SignalboxError;
  readonly head: ResponseHead;
  readonly tap: UsageTap;
  /** What arrived and was not passed on. */
  readonly withheldBytes: number;

  constructor(error: SignalboxError, head: ResponseHead, tap: UsageTap, withheldBytes: number) {
    super("refused", error.message, error);
    this.error = error;
    this.head = head;
    this.tap = tap;
    this.withheldBytes = withheldBytes;
  }
}

/** A response that is searched as a whole must be in memory. */
const MAX_WHOLE_BYTES = 32 * 1024 * 1024;
const NO_BYTES = Buffer.from("");
const BODY_HEADERS = /^(?:content-length|content-md5|digest|content-digest|repr-digest|etag|accept-ranges)$/i;

/** What the bytes of a response become. */
interface BodySearch {
  /** The bytes that may go on. Throws `GuardrailBlock`. */
  push(chunk: Buffer, isLast: boolean): Buffer;
}

export function guardResponse(
  rules: PlaceRules,
  findings: Findings,
  send: (handler: UpstreamHandler) => UpstreamExchange,
  handler: UpstreamHandler,
): UpstreamExchange {
  let exchange: UpstreamExchange | null = null;
  let head: ResponseHead | null = null;
  let search: BodySearch | null = null;
  let tap: UsageTap | null = null;
  let isWhole = false;
  let isOver = false;
  let received = 0;
  let passed = 0;
  const stop = (error: unknown) => {
    isOver = true;
    exchange?.abort();
    if (!(error instanceof GuardrailBlock) || head === null) {
      handler.onFailure(new UpstreamFailure("broken", "the response could not be searched", error));
      return;
    }
    tap ??= createUsageTap(head.contentType);
    handler.onFailure(new BlockedResponse(error.error, head, tap, received - passed));
  };
  const guarded: UpstreamHandler = {
    onHead(arrived) {
      if (isOver) return;
      head = arrived;
      tap = createUsageTap(arrived.contentType);
      try {
        search = searchFor(rules, findings, arrived);
      } catch (error) {
        stop(error);
        return;
      }
      isWhole = search instanceof WholeSearch;
      if (!isWhole) handler.onHead(search === null ? arrived : withoutLength(arrived));
    },
    onBody(chunk, isLast) {
      if (isOver || head === null) return;
      received += chunk.length;
      if (chunk.length > 0) tap?.push(chunk);
      try {
        const bytes = search === null ? chunk : search.push(chunk, isLast);
        passed += bytes.length;
        if (search instanceof WholeSearch && isWhole) {
          if (!isLast && !search.isPassing) return;
          isWhole = false;
          handler.onHead(search.isEdited ? withoutLength(head) : head);
        }
        if (bytes.length > 0 || isLast) handler.onBody(bytes, isLast);
      } catch (error) {
        stop(error);
      }
    },
    onReadEnd() {
      if (!isOver && !isWhole) handler.onReadEnd();
    },
    onFailure(failure) {
      if (!isOver) handler.onFailure(failure);
      isOver = true;
    },
  };
  exchange = send(guarded);
  if (isOver) exchange.abort();
  return exchange;
}

/** Null for a response without a body. */
function searchFor(rules: PlaceRules, findings: Findings, head: ResponseHead): BodySearch | null {
  if (head.status === 204 || head.status === 304) return null;
  const encoding = headerOf(head, "content-encoding");
  if (encoding !== "" && encoding.toLowerCase() !== "identity") {
    findings.unread("response", rules.strict, "it is compressed");
    return null;
  }
  const type = head.contentType.toLowerCase();
  if (/^(?:image|audio|video|font)\//.test(type)) {
    findings.unread("response", rules.strict, "it contains a file, a picture or sound");
    return null;
  }
  if (type.startsWith("text/event-stream")) return new StreamSearch(rules, findings, SERVER_SENT);
  if (/^application\/(?:x-)?ndjson/.test(type)) return new StreamSearch(rules, findings, LINES);
  if (type.startsWith("application/vnd.amazon.eventstream")) return new AwsSearch(rules, findings);
  return new WholeSearch(rules, findings, /[/+]json\b/.test(type));
}

class WholeSearch implements BodySearch {
  isEdited = false;
  /** Too large to be searched, and all rules let it pass. */
  isPassing = false;
  readonly #rules: PlaceRules;
  readonly #findings: Findings;
  readonly #mustBeJson: boolean;
  #chunks: Buffer[] = [];
  #size = 0;

  constructor(rules: PlaceRules, findings: Findings, mustBeJson: boolean) {
    this.#rules = rules;
    this.#findings = findings;
    this.#mustBeJson = mustBeJson;
  }

  push(chunk: Buffer, isLast: boolean): Buffer {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#size > MAX_WHOLE_BYTES && !this.isPassing) {
      this.#findings.unread("response", this.#rules.strict, "it is too large to be searched");
      this.isPassing = true;
    }
    if (!isLast && !this.isPassing) return NO_BYTES;
    const bytes = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    this.#chunks = [];
    if (this.isPassing || bytes.length === 0) return bytes;
    const text = textOf(bytes);
    if (text === null) {
      this.#findings.unread("response", this.#rules.strict, "it is no text");
      return bytes;
    }
    const edited = searchText(this.#rules, this.#findings, text, this.#mustBeJson, "response");
    this.isEdited = edited !== null;
    return edited === null ? bytes : Buffer.from(edited);
  }
}

/** How events stand in a text. */
interface EventForm {
  /** Where the event that begins at `from` ends, with what separates it from the next; -1 if it has not ended. */
  end(text: string, from: number): number;
  /** The document of an event; null if it has none. */
  read(event: string): string | null;
  /** The event with another document. */
  write(event: string, json: string): string;
}

const BLANK = /\r\n\r\n|\n\n|\r\r/g;
const DATA_LINE = /^data:? ?/;

const SERVER_SENT: EventForm = {
  end(text, from) {
    BLANK.lastIndex = from;
    const blank = BLANK.exec(text);
    return blank === null ? -1 : blank.index + blank[0].length;
  },
  read(event) {
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
  read: (line) => (line.trim() === "" ? null : line.trim()),
  write: (_, json) => `${json}\n`,
};

class StreamSearch implements BodySearch {
  readonly #events: GuardedEvents<string>;
  readonly #form: EventForm;
  readonly #decoder = new TextDecoder();
  #rest = "";
  readonly #rules: PlaceRules;
  readonly #findings: Findings;

  constructor(rules: PlaceRules, findings: Findings, form: EventForm) {
    this.#events = new GuardedEvents(rules, findings, "response");
    this.#form = form;
    this.#rules = rules;
    this.#findings = findings;
  }

  push(chunk: Buffer, isLast: boolean): Buffer {
    const text = this.#rest + this.#decoder.decode(chunk, { stream: !isLast });
    let released = "";
    let from = 0;
    for (let end = this.#form.end(text, from); end !== -1; end = this.#form.end(text, from)) {
      released += this.#pass(text.slice(from, end));
      from = end;
    }
    this.#rest = text.slice(from);
    if (this.#rest.length > MAX_WHOLE_BYTES)
      this.#findings.unread("response", this.#rules.strict, "an event is too large to be searched");
    if (isLast) {
      if (this.#rest !== "") released += this.#pass(this.#rest);
      released += this.#write(this.#events.end());
    }
    return released === "" ? NO_BYTES : Buffer.from(released);
  }

  #pass(event: string): string {
    return this.#write(this.#events.push(event, this.#form.read(event)));
  }

  #write(events: readonly ReleasedEvent<string>[]): string {
    let text = "";
    for (const { frame, json } of events) text += json === null ? frame : this.#form.write(frame, json);
    return text;
  }
}

interface AwsFrame {
  readonly bytes: Buffer;
  /** The model's event is in base64 inside of the payload. */
  readonly isWrapped: boolean;
}

const WRAPPED = /^\{"bytes":"([A-Za-z0-9+/=]*)"/;

class AwsSearch implements BodySearch {
  readonly #events: GuardedEvents<AwsFrame>;
  #rest: Buffer = NO_BYTES;

  constructor(rules: PlaceRules, findings: Findings) {
    this.#events = new GuardedEvents(rules, findings, "response");
  }

  push(chunk: Buffer, isLast: boolean): Buffer {
    const { messages, rest } = splitAwsMessages(Buffer.concat([this.#rest, chunk]));
    this.#rest = rest;
    if (isLast && rest.length > 0) throw new Error("the event stream ends inside a message");
    const released = messages.flatMap((bytes) => this.#pass(bytes));
    if (isLast) released.push(...this.#events.end().map(writeAws));
    return released.length === 0 ? NO_BYTES : Buffer.concat(released);
  }

  #pass(bytes: Buffer): Buffer[] {
    let payload = "";
    editAwsMessage(bytes, (found) => {
      payload = found.toString("utf8");
      return null;
    });
    const inner = WRAPPED.exec(payload)?.[1];
    const json = inner === undefined ? payload : Buffer.from(inner, "base64").toString("utf8");
    return this.#events
      .push({ bytes, isWrapped: inner !== undefined }, json === "" ? null : json)
      .map(writeAws);
  }
}

function writeAws({ frame: { bytes, isWrapped }, json }: ReleasedEvent<AwsFrame>): Buffer {
  if (json === null) return bytes;
  const payload = isWrapped ? JSON.stringify({ bytes: Buffer.from(json).toString("base64") }) : json;
  return editAwsMessage(bytes, () => payload);
}

function headerOf({ rawHeaders }: ResponseHead, wanted: string): string {
  for (let i = 0; i + 1 < rawHeaders.length; i += 2)
    if (rawHeaders[i]?.toLowerCase() === wanted) return rawHeaders[i + 1] ?? "";
  return "";
}

/** The length and the digest of what the provider sent. */
function withoutLength(head: ResponseHead): ResponseHead {
  const rawHeaders = head.rawHeaders.filter((_, i) => !BODY_HEADERS.test(head.rawHeaders[i - (i % 2)] ?? ""));
  return { ...head, rawHeaders };
}
