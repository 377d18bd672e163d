/**
 * Holds a response until its judges have a verdict: a stream in pieces of some sentences (`window`) or all of it (`hold`), everything else as a whole. Judges read what the provider
 * wrote, before masks are put back.
 *
 * Invariants:
 * 1. No event leaves before the verdict on its text, and on all text before it.
 * 2. Where a piece ends depends on the events, not on how their bytes were cut.
 * 3. What waits counts in the share of the caller. A few questions are open at a time, and the provider waits while many pieces do.
 * 4. What arrived is charged, whoever ends the response.
 */
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
import { readAwsDocument } from "./aws-message.ts";
import { BlockedResponse } from "./blocked-response.ts";
import { GuardrailBlock } from "./findings.ts";
import { JudgedText, textOfAnswer } from "./judged-text.ts";

/** Both throw `GuardrailBlock`. */
export interface ResponseJudge {
  judge(text: string, signal: AbortSignal): Promise<void>;
  /** The rest of the response has no verdict; it may pass if this does not throw. */
  unjudged(reason: string): void;
}

/** A piece ends with the first sentence that ends behind so many characters, and has at most so many. */
const MIN_PIECE = 300;
const MAX_PIECE = 1500;
/** Of the text before a piece, so that a verdict does not depend on where the piece begins. */
export const CONTEXT = 300;
/** A shorter text that stands in an earlier one may mean something else. */
const MIN_REPEATED = 100;
const SENTENCE_END = /[.!?。！？\n]["')\]]?\s*$/;
const MAX_WHOLE_BYTES = 32 * 1024 * 1024;
const MAX_OPEN_QUESTIONS = 4;
const MAX_WAITING_PIECES = 16;
const NO_BYTES = Buffer.from("");

/** Whether a text is long enough to be asked about. */
export function isPieceDue(text: string): boolean {
  return text.length >= MAX_PIECE || (text.length >= MIN_PIECE && SENTENCE_END.test(text));
}

/** Bytes that leave together. */
interface Piece {
  readonly bytes: Buffer;
  readonly text: string;
}

export function judgeResponse(
  judge: ResponseJudge,
  isHeld: boolean,
  share: CallShare,
  send: (handler: UpstreamHandler) => UpstreamExchange,
  handler: UpstreamHandler,
): UpstreamExchange {
  const abort = new AbortController();
  let exchange: UpstreamExchange | null = null;
  let head: ResponseHead | null = null;
  let tap: UsageTap | null = null;
  let reader: PieceReader | null = null;
  let isOver = false;
  /** It is too long to be judged, and all rules let it pass. */
  let isUnjudged = false;
  let received = 0;
  let passed = 0;
  let counted = 0;
  /** Pieces that wait for their verdicts, in order. */
  let queue: Promise<void> = Promise.resolve();
  let waiting = 0;
  let isPaused = false;
  let isPausedByClient = false;
  const questions = new FewAtATime(MAX_OPEN_QUESTIONS);

  const fail = (error: unknown) => {
    if (isOver) return;
    isOver = true;
    exchange?.abort();
    abort.abort();
    const own = error instanceof GuardrailBlock ? error.error : error;
    if (own instanceof SignalboxError && head !== null && tap !== null)
      handler.onFailure(new BlockedResponse(own, head, tap, received - passed));
    else if (error instanceof SignalboxError)
      handler.onFailure(new UpstreamFailure("refused", error.message, error));
    else handler.onFailure(new UpstreamFailure("broken", "the response could not be judged", error));
  };
  const hold = (bytes: number) => {
    // Each byte is held once: what has left stays counted until the response ends.
    if (bytes > 0 && !share.holdMemory(bytes))
      throw overloaded("There is no memory for the response of the provider");
    counted += bytes;
  };
  const release = (bytes: Buffer, isLast: boolean, isHeadDue: boolean) => {
    if (isOver) return;
    if (isHeadDue && head !== null) handler.onHead(head);
    if (isOver) return;
    passed += bytes.length;
    if (bytes.length > 0 || isLast) handler.onBody(bytes, isLast);
    if (!isOver && !isLast) handler.onReadEnd();
  };
  const enqueue = ({ bytes, text }: Piece, isLast: boolean, isHeadDue: boolean) => {
    const verdict =
      text.trim() === "" ? null : questions.run(() => judge.judge(text, abort.signal), abort.signal);
    // It is awaited in its turn.
    verdict?.catch(() => undefined);
    waiting += 1;
    queue = queue.then(async () => {
      try {
        await verdict;
        waiting -= 1;
        release(bytes, isLast, isHeadDue);
        if (isPaused && waiting < MAX_WAITING_PIECES && !isOver) {
          isPaused = false;
          if (!isPausedByClient) exchange?.resume();
        }
      } catch (error) {
        fail(error);
      }
    });
    if (isPaused || waiting < MAX_WAITING_PIECES) return;
    isPaused = true;
    exchange?.pause();
  };
  const finish = (whole: PieceReader) => {
    if (!whole.isWhole) return enqueue(whole.end(), true, false);
    share.beginWork(received, () => {
      if (isOver) return;
      try {
        enqueue(whole.end(), true, true);
      } catch (error) {
        fail(error);
      }
    });
  };
  const judged: UpstreamHandler = {
    onHead(arrived) {
      if (isOver) return;
      head = arrived;
      reader = readerFor(arrived, isHeld);
      if (reader === null) return handler.onHead(arrived);
      tap = createUsageTap(arrived.contentType);
      if (!reader.isWhole) handler.onHead(arrived);
    },
    onBody(chunk, isLast) {
      if (isOver) return;
      if (reader === null) return handler.onBody(chunk, isLast);
      received += chunk.length;
      if (chunk.length > 0) tap?.push(chunk);
      try {
        if (isUnjudged) return enqueue({ bytes: chunk, text: "" }, isLast, false);
        if (received > MAX_WHOLE_BYTES) {
          judge.unjudged("it is too long to be judged");
          isUnjudged = true;
          return enqueue({ bytes: Buffer.concat([reader.take(), chunk]), text: "" }, isLast, reader.isWhole);
        }
        hold(received - counted);
        for (const piece of reader.push(chunk)) enqueue(piece, false, false);
        if (isLast) finish(reader);
      } catch (error) {
        fail(error);
      }
    },
    onReadEnd() {
      if (!isOver && (reader === null || (!reader.isWhole && received === 0))) handler.onReadEnd();
    },
    onFailure(failure) {
      // What is complete has its verdict first.
      queue = queue.then(() => {
        if (isOver) return;
        isOver = true;
        abort.abort();
        handler.onFailure(failure);
      });
    },
  };
  const sent = send(judged);
  exchange = sent;
  return {
    pause() {
      isPausedByClient = true;
      sent.pause();
    },
    resume() {
      isPausedByClient = false;
      if (!isPaused) sent.resume();
    },
    abort() {
      isOver = true;
      abort.abort();
      sent.abort();
    },
  };
}

/** Starts tasks in order, a few at a time. */
class FewAtATime {
  readonly #max: number;
  readonly #running: Promise<void>[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  /** Rejects when the signal is aborted before the task begins. */
  run(task: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const before = this.#running.length < this.#max ? undefined : this.#running.shift();
    const start = () => {
      signal.throwIfAborted();
      return task();
    };
    const done = before === undefined ? task() : before.then(start, start);
    this.#running.push(done);
    return done;
  }
}

/** Cuts a response into pieces. */
interface PieceReader {
  readonly isWhole: boolean;
  push(chunk: Buffer): Piece[];
  /** The rest. */
  end(): Piece;
  /** The bytes of the rest, which nobody reads. */
  take(): Buffer;
}

/** Null for what has no text of a model: errors, media, what is compressed. Rules on what cannot be read are applied behind this. */
function readerFor({ status, contentType, rawHeaders }: ResponseHead, isHeld: boolean): PieceReader | null {
  if (status >= 400 || status === 204 || status === 304) return null;
  const type = contentType.toLowerCase();
  if (/^(?:image\/(?!svg)|audio\/|video\/)/.test(type)) return null;
  const isEncoded = rawHeaders.some(
    (name, i) =>
      i % 2 === 0 && /^content-encoding$/i.test(name) && !/^identity$/i.test(rawHeaders[i + 1] ?? ""),
  );
  if (isEncoded) return null;
  if (type.startsWith("text/event-stream")) return new StreamReader(SERVER_SENT, isHeld);
  if (/^application\/(?:x-)?(?:ndjson|jsonl|jsonlines)\b/.test(type)) return new StreamReader(LINES, isHeld);
  if (type.startsWith("application/vnd.amazon.eventstream")) return new StreamReader(AWS, isHeld);
  return new WholeReader();
}

class WholeReader implements PieceReader {
  readonly isWhole = true;
  #chunks: Buffer[] = [];

  push(chunk: Buffer): Piece[] {
    this.#chunks.push(chunk);
    return [];
  }

  end(): Piece {
    const bytes = this.take();
    return { bytes, text: textOfAnswer(bytes) };
  }

  take(): Buffer {
    const bytes = Buffer.concat(this.#chunks);
    this.#chunks = [];
    return bytes;
  }
}

interface Events {
  readonly events: readonly { readonly bytes: Buffer; readonly json: string }[];
  readonly rest: Buffer;
}

/** Of what ends an event, so much may be in earlier chunks. */
const TAIL = 3;

/** How events stand in the bytes of a stream. */
interface EventForm {
  /** False if no event ends in the chunk. `before`: the last bytes before it; `size`: of all that waits; `length`: what `lengthOf` said. */
  mayEnd(chunk: Buffer, before: Buffer, size: number, length: number): boolean;
  split(bytes: Buffer): Events;
  /** The length that an event says of itself at its beginning; 0 if it does not. */
  lengthOf(rest: Buffer): number;
}

class StreamReader implements PieceReader {
  readonly isWhole: boolean;
  readonly #form: EventForm;
  /** The beginning of an event, in pieces: a long one is put together once, not with each read. */
  #rest: Buffer[] = [];
  #size = 0;
  #length = 0;
  #tail: Buffer = NO_BYTES;
  #held: Buffer[] = [];
  readonly #text = new JudgedText("response");
  #context = "";
  /** All texts that were judged, for events that repeat them. */
  #known = "";

  constructor(form: EventForm, isHeld: boolean) {
    this.#form = form;
    this.isWhole = isHeld;
  }

  push(chunk: Buffer): Piece[] {
    const before = this.#tail;
    this.#tail = (chunk.length < TAIL ? Buffer.concat([before, chunk]) : chunk).subarray(-TAIL);
    this.#rest.push(chunk);
    this.#size += chunk.length;
    if (!this.#form.mayEnd(chunk, before, this.#size, this.#length)) return [];
    const { events, rest } = this.#form.split(joined(this.#rest));
    this.#rest = [rest];
    this.#size = rest.length;
    this.#length = this.#form.lengthOf(rest);
    const pieces: Piece[] = [];
    for (const { bytes, json } of events) {
      this.#held.push(bytes);
      if (json !== "") this.#text.add(json);
      const { text } = this.#text;
      if (this.isWhole) continue;
      if (text === "" || isPieceDue(text)) pieces.push(this.#take());
    }
    return pieces;
  }

  end(): Piece {
    const rest = joined(this.#rest);
    this.#rest = [];
    // What has no end is judged as it is.
    if (rest.length > 0) this.#text.add(rest.toString("utf8").replaceAll(/^data: ?/gm, ""));
    this.#held.push(rest);
    return this.#take();
  }

  take(): Buffer {
    return joined([...this.#held, ...this.#rest]);
  }

  #take(): Piece {
    const bytes = joined(this.#held);
    this.#held = [];
    const text = this.#text.take();
    // The last events of some dialects have the whole text again.
    const isRepeated = text.length >= MIN_REPEATED && this.#known.includes(text);
    const isNew = text.trim() !== "" && !isRepeated;
    const asked = isNew ? this.#context + text : "";
    if (isNew) {
      this.#known += text;
      this.#context = this.#known.slice(-CONTEXT);
    }
    return { bytes, text: asked };
  }
}

/** Two ends of lines. All of them are ASCII. */
const BLANK = /(?:\r\n|\n|\r(?!\n)){2}/g;

const SERVER_SENT: EventForm = {
  // The end may have begun in the chunk before.
  mayEnd: (chunk, before) => hasBlank(before, chunk),
  split: splitServerSent,
  lengthOf: () => 0,
};

function hasBlank(before: Buffer, chunk: Buffer): boolean {
  BLANK.lastIndex = 0;
  return BLANK.test(before.toString("latin1") + chunk.toString("latin1"));
}

function splitServerSent(bytes: Buffer): Events {
  const ascii = bytes.toString("latin1");
  const events: { bytes: Buffer; json: string }[] = [];
  let from = 0;
  BLANK.lastIndex = 0;
  for (let blank = BLANK.exec(ascii); blank !== null; blank = BLANK.exec(ascii)) {
    const end = blank.index + blank[0].length;
    const event = bytes.subarray(from, end);
    const lines = event.toString("utf8").split(/\r\n|\n|\r/);
    const data = lines.filter((line) => line.startsWith("data")).map((line) => line.replace(/^data:? ?/, ""));
    const json = data.join("\n");
    events.push({ bytes: event, json: json === "[DONE]" ? "" : json });
    from = end;
  }
  return { events, rest: bytes.subarray(from) };
}

const LINES: EventForm = { mayEnd: (chunk) => chunk.includes(0x0a), split: splitLines, lengthOf: () => 0 };

function splitLines(bytes: Buffer): Events {
  const events: { bytes: Buffer; json: string }[] = [];
  let from = 0;
  for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, from)) {
    const line = bytes.subarray(from, end + 1);
    events.push({ bytes: line, json: line.toString("utf8").trim() });
    from = end + 1;
  }
  return { events, rest: bytes.subarray(from) };
}

/** Shorter beginnings of a message are not checked. */
const AWS_PRELUDE = 12;

const AWS: EventForm = {
  mayEnd: (_chunk, _before, size, length) => size >= length,
  split: splitAws,
  lengthOf: (rest) => (rest.length < AWS_PRELUDE ? 0 : rest.readUInt32BE(0)),
};

function splitAws(bytes: Buffer): Events {
  const { messages, rest } = splitAwsMessages(bytes);
  return { events: messages.map((message) => ({ bytes: message, json: readAwsDocument(message) })), rest };
}

function joined(parts: readonly Buffer[]): Buffer {
  const [only = NO_BYTES] = parts;
  return parts.length < 2 ? only : Buffer.concat(parts);
}
