/**
 * Translates one streamed response. Input and output are server-sent events.
 *
 * 1. Every cut of the same input gives the same output, taken together.
 * 2. After the terminal event or an error nothing more comes out.
 * 3. A stream that broke off never ends with a terminal event: the client must be able to tell.
 */
import { DIALECTS } from "./dialects.ts";
import type { NeutralError } from "./neutral/neutral-error.ts";
import type { StreamDecoder, StreamEncoder, StreamEvent } from "./neutral/stream-event.ts";
import type { NeutralUsage } from "./neutral/usage.ts";
import type { ResponseContext } from "./options.ts";
import { StreamToolRestorer } from "./restore-tools.ts";
import { EventParser } from "./stream/event-parser.ts";

export interface StreamTranslator {
  /**
   * What the client may have before the upstream's first byte: `message_start` (messages), `response.created`
   * (responses), nothing (chat, gemini). Optional; without it these events follow the upstream's first event.
   */
  begin(): string;
  /** Takes the next bytes of the upstream, cut anywhere, and returns the text for the client, possibly empty. */
  write(chunk: Uint8Array): string;
  /** The upstream ended. A stream that broke off ends with an error event of the client's dialect and no terminal event. */
  end(): string;
  /** Ends the stream with this error. Later calls return an empty string. */
  fail(error: NeutralError): string;
  /** The upstream's terminal event was seen, and it was not an error. */
  readonly isComplete: boolean;
  /** The error that ended the stream, if one did. */
  readonly error: NeutralError | null;
  /** Token counts seen so far. */
  readonly usage: NeutralUsage | null;
  /** Characters that are in memory: an event that has not ended, and what a later event repeats. */
  readonly heldLength: number;
}

const BROKEN_OFF = "the provider broke off the stream";

export function createStreamTranslator(context: ResponseContext): StreamTranslator {
  return new Translator(context);
}

class Translator implements StreamTranslator {
  readonly #parser = new EventParser((event, data) => this.#decode(event, data));
  readonly #decoder: StreamDecoder;
  readonly #encoder: StreamEncoder;
  readonly #restorer: StreamToolRestorer | null;
  readonly #emit = (event: StreamEvent) => this.#take(event);
  readonly #encode = (event: StreamEvent) => {
    this.#out += this.#encoder.encode(event);
  };
  #out = "";
  #state: "running" | "complete" | "failed" = "running";
  #error: NeutralError | null = null;
  #usage: NeutralUsage | null = null;

  constructor(context: ResponseContext) {
    this.#decoder = DIALECTS[context.to].createDecoder(context.newId);
    this.#encoder = DIALECTS[context.from].createEncoder(context);
    this.#restorer = context.renamedTools.size === 0 ? null : new StreamToolRestorer(context.renamedTools);
  }

  get isComplete(): boolean {
    return this.#state === "complete";
  }

  get error(): NeutralError | null {
    return this.#error;
  }

  get usage(): NeutralUsage | null {
    return this.#usage;
  }

  get heldLength(): number {
    return this.#parser.pendingLength + (this.#encoder.heldLength ?? 0);
  }

  begin(): string {
    return this.#state === "running" ? this.#encoder.begin() : "";
  }

  write(chunk: Uint8Array): string {
    if (this.#state !== "running") return "";
    this.#guard(() => this.#parser.push(chunk), "the provider sent a stream that cannot be read");
    return this.#flush();
  }

  end(): string {
    if (this.#state !== "running") return "";
    this.#guard(() => this.#parser.end(), BROKEN_OFF);
    if (this.#state === "running") {
      if (this.#decoder.finish(this.#emit)) this.#take({ type: "end" });
      else this.#take(failure(BROKEN_OFF));
    }
    return this.#flush();
  }

  fail(error: NeutralError): string {
    this.#take({ type: "error", error });
    return this.#flush();
  }

  #decode(event: string, data: string): void {
    if (this.#state === "running") this.#decoder.decode(event, data, this.#emit);
  }

  /** Bytes that are no stream of the dialect end the stream; the client gets no half-understood rest. */
  #guard(step: () => void, message: string): void {
    try {
      step();
    } catch (error) {
      if (!(error instanceof SyntaxError) && !isTooLong(error)) throw error;
      this.#take(failure(message));
    }
  }

  #take(event: StreamEvent): void {
    if (this.#state !== "running") return;
    if (event.type === "usage") this.#usage = event.usage;
    else if (event.type === "start") this.#usage = event.usage;
    if (this.#restorer === null) this.#encode(event);
    else this.#restorer.restore(event, this.#encode);
    if (event.type === "end") this.#state = "complete";
    else if (event.type === "error") {
      this.#state = "failed";
      this.#error = event.error;
    }
  }

  #flush(): string {
    const out = this.#out;
    this.#out = "";
    return out;
  }
}

function failure(message: string): StreamEvent {
  return { type: "error", error: { status: 502, kind: "server", message } };
}

function isTooLong(error: unknown): boolean {
  return error instanceof Error && error.name === "EventTooLongError";
}
