/**
 * Holds the beginning of a response while the call can still go to another target, until it is clear that the response is an answer.
 *
 * | response                  | held until                                                        |
 * | ------------------------- | ----------------------------------------------------------------- |
 * | event stream              | its first event; with a first-token limit, the first content      |
 * | messages of Amazon's      | its first message, which is no exception                          |
 * | lines of JSON             | its first line, which has no error                                |
 * | JSON                      | the first bytes; a body that begins as an error does to its end   |
 * | page                      | its first bytes: it is no answer                                  |
 * | error status              | the end of the body, which may name the reason                    |
 * | any, with `hold-response` | the end of the body, which must be that of an answer              |
 *
 * Invariants:
 * 1. A hold never keeps more than its bound; when it is reached, the response is released as it is. Whole responses are also counted
 *    against the memory for bodies, and released when it is used up.
 * 2. A response that is an answer is released by the read that shows it: a hold adds no delay.
 * 3. Every byte that was pushed is in `chunks`, in order and unchanged.
 */
import { isFields } from "../../core/fields.ts";
import type { ResponseHead, SpareMemory } from "../../engines/relay/index.ts";
import type { AttemptPolicy } from "../step/attempt-policy.ts";
import type { Step } from "../step/step.ts";
import { faultOf, isLines } from "./answer-check.ts";
import { type AttemptFailure, inBandFailure, readReason } from "./attempt-failure.ts";
import { AwsAnswer, isAwsStream } from "./aws-answer.ts";
import { readRetryInfo } from "./retry-wait.ts";
import { EventSplitter, hasError, isErrorEvent, isOpeningEvent } from "./stream-events.ts";

/** `wait`: not clear yet; `release`: an answer; otherwise the failure that the response contains. */
export type HoldVerdict = "wait" | "release" | AttemptFailure;

export interface AnswerHold {
  readonly chunks: Buffer[];
  /** The response has begun to answer, and is held for its end only. */
  readonly hasContent: boolean;
  /** Never returns `wait` for the last chunk. */
  push(chunk: Buffer, isLast: boolean): HoldVerdict;
  /** Gives the memory of the held bytes back to its budget. */
  dispose(): void;
}

const MAX_HELD_BYTES = 64 * 1024;
/** A whole answer is larger than its beginning: a long stream has some hundred kilobytes. */
const MAX_WHOLE_BYTES = 4 * 1024 * 1024;

type HeldStep = Pick<Step, "policy" | "requestType"> & {
  readonly upstream: Pick<Step["upstream"], "method">;
};

const MODEL_CALLS: ReadonlySet<string> = new Set([
  "chat",
  "completions",
  "responses",
  "messages",
  "embeddings",
  "generate_content",
  "images",
  "audio",
  "moderations",
]);

/** The hold for a response with a success status; null when nothing in it needs to be examined. */
export function holdFor(head: ResponseHead, step: HeldStep, memory: SpareMemory): AnswerHold | null {
  const isExamined = mustAnswer(head, step);
  const { contentType, status } = head;
  const first = isExamined ? beginningOf(contentType, status, step.policy) : null;
  return step.policy.holdsResponse ? new WholeHold(first, isExamined ? head : null, memory) : first;
}

/**
 * Only calls of models must have a body. Another POST that was answered with nothing has been carried out, and must not be repeated. Bedrock's and Ollama's
 * own paths have no type, and their streams are answers of models.
 */
export function mustAnswer(
  { status, contentType }: ResponseHead,
  { requestType, upstream }: Pick<HeldStep, "requestType" | "upstream">,
): boolean {
  if (upstream.method !== "POST" || status >= 300 || status === 204) return false;
  return MODEL_CALLS.has(requestType) || isAwsStream(contentType) || isLines(contentType);
}

function beginningOf(contentType: string, status: number, policy: AttemptPolicy): AnswerHold | null {
  const type = (contentType.split(";", 1)[0] ?? "").trim().toLowerCase();
  if (type === "text/event-stream") return new StreamHold(status, policy.firstTokenTimeoutMs !== null);
  if (type === "text/html") return new PageHold(status);
  if (isAwsStream(type)) return new AwsHold(status);
  if (isLines(type)) return new LineHold(status);
  return type.endsWith("json") ? new JsonHold(status) : null;
}

abstract class BoundedHold implements AnswerHold {
  readonly chunks: Buffer[] = [];
  hasContent = false;
  protected readonly maxBytes: number = MAX_HELD_BYTES;
  #size = 0;

  push(chunk: Buffer, isLast: boolean): HoldVerdict {
    this.chunks.push(chunk);
    this.#size += chunk.length;
    const verdict = this.judge(chunk, isLast);
    if (verdict !== "wait") return verdict;
    return isLast || this.#size > this.maxBytes ? "release" : "wait";
  }

  dispose(): void {
    // The beginning of a response is small enough not to be counted.
  }

  protected abstract judge(chunk: Buffer, isLast: boolean): HoldVerdict;
}

/** Judges the beginning of a response with a success status. */
abstract class BeginningHold extends BoundedHold {
  protected readonly status: number;

  constructor(status: number) {
    super();
    this.status = status;
  }
}

/** Waits for the first event, or with `untilContent` for the first event with content. */
class StreamHold extends BeginningHold {
  readonly #events = new EventSplitter();
  readonly #untilContent: boolean;

  constructor(status: number, untilContent: boolean) {
    super(status);
    this.#untilContent = untilContent;
  }

  protected judge(chunk: Buffer, isLast: boolean): HoldVerdict {
    if (!this.#untilContent && this.chunks.length === 1 && isPlainAnswer(chunk)) return "release";
    for (const event of this.#events.push(chunk, isLast)) {
      if (isErrorEvent(event)) return inBandFailure(this.status, `error event: ${event.data.slice(0, 200)}`);
      if (event.data === "[DONE]") return inBandFailure(this.status, "the stream ended without content");
      if (!this.#untilContent || !isOpeningEvent(event)) return "release";
    }
    return isLast ? inBandFailure(this.status, "the stream ended without content") : "wait";
  }
}

/** The usual beginning of a stream, recognised without decoding it: a whole event that cannot be an error. */
function isPlainAnswer(chunk: Buffer): boolean {
  return (
    (startsWith(chunk, "data: {") || startsWith(chunk, "event: ")) &&
    chunk.includes("\n\n") &&
    !chunk.includes("error") &&
    !chunk.includes("response.failed") &&
    !chunk.includes("[DONE]")
  );
}

function startsWith(chunk: Buffer, text: string): boolean {
  return chunk.length > text.length && chunk.toString("latin1", 0, text.length) === text;
}

/** A page is no answer of a model, whatever it says. */
class PageHold extends BeginningHold {
  protected judge(): HoldVerdict {
    return inBandFailure(this.status, "the response is a page");
  }
}

/** Waits for the first message. */
class AwsHold extends BeginningHold {
  readonly #answer = new AwsAnswer();

  protected judge(chunk: Buffer, isLast: boolean): HoldVerdict {
    this.#answer.push(chunk);
    const failure = isLast ? this.#answer.fault(this.status) : this.#answer.failure(this.status);
    return failure ?? (this.#answer.hasBegun ? "release" : "wait");
  }
}

/** Waits for the first line that is not empty. */
class LineHold extends BeginningHold {
  protected judge(_chunk: Buffer, isLast: boolean): HoldVerdict {
    const text = Buffer.concat(this.chunks).toString("utf8").trimStart();
    const end = text.indexOf("\n");
    if (end === -1 && !isLast) return "wait";
    if (text === "") return inBandFailure(this.status, "the stream ended without content");
    const line = end === -1 ? text : text.slice(0, end);
    return isErrorObject(line) ? inBandFailure(this.status, `error line: ${line.slice(0, 200)}`) : "release";
  }
}

/** What errors of OpenAI and Google, and those of Anthropic, begin with. */
const ERROR_STARTS = ['{"error"', '{"type":"error"'];

/** Releases JSON at once, unless it begins as an error does. */
class JsonHold extends BeginningHold {
  protected judge(_chunk: Buffer, isLast: boolean): HoldVerdict {
    const start = Buffer.concat(this.chunks).toString("utf8", 0, 64).trimStart();
    if (start === "") return isLast ? inBandFailure(this.status, "the response is empty") : "wait";
    if (start[0] !== "{" && start[0] !== "[") return "release";
    const compact = start.replaceAll(/\s/g, "").replace(/^\[/, "");
    if (!ERROR_STARTS.some((error) => compact.startsWith(error) || error.startsWith(compact)))
      return "release";
    if (!isLast) return "wait";
    return isErrorObject(Buffer.concat(this.chunks).toString("utf8"))
      ? inBandFailure(this.status, "the response is an error")
      : "release";
  }
}

/** Waits for the end of an error's body, and reads its reason and the time to wait. */
export class ErrorHold extends BoundedHold {
  readonly #failure: AttemptFailure;

  constructor(failure: AttemptFailure) {
    super();
    this.#failure = failure;
  }

  protected judge(_chunk: Buffer, isLast: boolean): HoldVerdict {
    if (!isLast) return "wait";
    const body = Buffer.concat(this.chunks);
    const retryAfterMs = this.#failure.retryAfterMs ?? readRetryInfo(body);
    return { ...this.#failure, reason: readReason(body), retryAfterMs };
  }
}

/** Waits for the end of the whole response; `first` judges its beginning. `head` is that of a response that must be an answer. */
class WholeHold extends BoundedHold {
  protected override readonly maxBytes = MAX_WHOLE_BYTES;
  readonly #first: AnswerHold | null;
  readonly #head: ResponseHead | null;
  readonly #memory: SpareMemory;
  #taken = 0;

  constructor(first: AnswerHold | null, head: ResponseHead | null, memory: SpareMemory) {
    super();
    this.#first = first;
    this.#head = head;
    this.#memory = memory;
  }

  override push(chunk: Buffer, isLast: boolean): HoldVerdict {
    if (!this.#memory.takeSpare(chunk.length)) {
      this.chunks.push(chunk);
      return "release";
    }
    this.#taken += chunk.length;
    // A copy: the chunk is a part of a slab that many calls share, and would keep all of it in memory.
    return super.push(Buffer.from(chunk), isLast);
  }

  override dispose(): void {
    this.#memory.release(this.#taken);
    this.#taken = 0;
  }

  protected judge(chunk: Buffer, isLast: boolean): HoldVerdict {
    if (!this.hasContent) {
      const verdict = this.#first?.push(chunk, isLast) ?? "release";
      if (typeof verdict === "object") return verdict;
      this.hasContent = verdict === "release";
    }
    if (!isLast) return "wait";
    return (this.#head === null ? null : faultOf(this.#head, Buffer.concat(this.chunks))) ?? "release";
  }
}

/** An error of any API; of a list, such as Gemini streams, one with an error. */
function isErrorObject(json: string): boolean {
  try {
    const value: unknown = JSON.parse(json);
    return (Array.isArray(value) ? (value as unknown[]) : [value]).some(
      (one) => isFields(one) && (one["type"] === "error" || hasError(one)),
    );
  } catch {
    return false;
  }
}
