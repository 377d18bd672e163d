/**
 * The event that ends a stream which the provider cut: clients of each API understand it as an error and do not take the partial answer for a
 * whole one. The connection is closed without the end of the body afterwards, so clients that ignore the event notice too. It is closed a
 * little later: many clients discard what they have not read yet when a connection breaks, and would never see the event.
 */
import { afterAwakeTime } from "../../core/awake-time.ts";
import type { SignalboxError } from "@signalbox/protocol";
import type { HttpResponse } from "../../engines/http-server/index.ts";
import { type ResponseHead, writeAwsMessage } from "../../engines/relay/index.ts";
import type { RequestType } from "../step/step.ts";
import type { ConvertedExchange, ApiDialect } from "../step/translation.ts";

/** The answer that broke off. */
export interface CutAnswer {
  readonly head: ResponseHead | null;
  /** The dialect of the client, or the type of the call. */
  readonly dialect: RequestType | ApiDialect;
  /** The last bytes that went to the client; null when none did. */
  readonly lastChunk: Buffer | null;
  readonly converted: ConvertedExchange | null;
  readonly isTimeout: boolean;
  /** Why the gateway ended the stream; null when the provider did. */
  readonly error: SignalboxError | null;
}

const READING_MS = 100;

/** Sends the error event, if the stream is at the end of an event, and closes the connection. */
export function sendCut(response: HttpResponse, cut: CutAnswer): void {
  const event = toCutEvent(cut);
  if (event === null || response.destroyed) response.destroy();
  else response.write(event, () => closeLater(response));
}

/** A client that has read the event usually closes the connection itself. One that was paused together with this process still has its time. */
function closeLater(response: HttpResponse): void {
  response.once(
    "close",
    afterAwakeTime(READING_MS, () => response.destroy()),
  );
}

function toCutEvent({ head, dialect, lastChunk, converted, isTimeout, error }: CutAnswer): Buffer | null {
  if (head !== null && error !== null) {
    // Streams of other forms end with the error of their own form.
    if (/^application\/vnd\.amazon\.eventstream/i.test(head.contentType))
      return toAwsException(error.message);
    if (/^application\/(?:x-)?ndjson/i.test(head.contentType))
      return Buffer.from(`${JSON.stringify({ error: error.message })}\n`);
  }
  const isStream = head !== null && /^text\/event-stream\s*(?:;|$)/i.test(head.contentType);
  // With a length announced, bytes beyond it would be read as the next response.
  if (!isStream || head.rawHeaders.some((text, i) => i % 2 === 0 && /^content-length$/i.test(text)))
    return null;
  if (lastChunk !== null && !endsEvent(lastChunk)) return null;
  const { code, message } = error ?? (isTimeout ? STALLED : BROKEN);
  return converted?.cut(isTimeout, error) ?? toErrorEvent(dialect, { code, message, isTimeout });
}

const STALLED = { code: 2004, message: "Provider stopped in the middle of its answer" };
const BROKEN = { code: 2005, message: "Provider broke off in the middle of its answer" };

interface StreamFault {
  readonly code: number;
  readonly message: string;
  readonly isTimeout: boolean;
}

function toErrorEvent(type: RequestType | ApiDialect, { code, message, isTimeout }: StreamFault): Buffer {
  const error = { message, type: "gateway_error", param: null, code: String(code) };
  switch (type) {
    case "messages":
      return event("error", {
        type: "error",
        error: { type: isTimeout ? "timeout_error" : "api_error", message },
      });
    case "responses":
      // The documented event is flat; the nested error is what the clients throw.
      return event("error", { type: "error", code: String(code), message, param: null, error });
    case "generate_content":
    case "gemini":
      return event("", {
        error: {
          code: isTimeout ? 504 : 502,
          message,
          status: isTimeout ? "DEADLINE_EXCEEDED" : "UNAVAILABLE",
        },
      });
    default:
      return event("", { error });
  }
}

function toAwsException(message: string): Buffer {
  const headers = { ":message-type": "exception", ":exception-type": "validationException" };
  return writeAwsMessage({ ...headers, ":content-type": "application/json" }, JSON.stringify({ message }));
}

function event(name: string, data: object): Buffer {
  return Buffer.from(`${name === "" ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`);
}

const LINE_FEED = 0x0a;
const RETURN = 0x0d;

/** True when the bytes end with a blank line. Inside an event, another event would become a part of it. */
function endsEvent(bytes: Buffer): boolean {
  const last = bytes.at(-1);
  if (last === LINE_FEED) {
    const before = bytes.at(-2);
    return before === LINE_FEED || (before === RETURN && bytes.at(-3) === LINE_FEED);
  }
  return last === RETURN && bytes.at(-2) === RETURN;
}
