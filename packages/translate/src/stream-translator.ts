import type { ResponseContext } from "./options.ts";
import type { NeutralError } from "./neutral/neutral-error.ts";
import type { NeutralUsage } from "./neutral/usage.ts";

/** Translates one streamed response. Input and output are server-sent events. */
export interface StreamTranslator {
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
}

export function createStreamTranslator(context: ResponseContext): StreamTranslator {
  throw new Error(`no translator from ${context.to} to ${context.from}`);
}
