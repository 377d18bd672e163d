/** Turns one response into the client's dialect. Used by one attempt, from the beginning of its answer to the end. */
import type { ResponseHead } from "../../engines/relay/index.ts";

export interface ResponseTranslator {
  head(head: ResponseHead): ResponseHead;
  /** The bytes for the client, possibly none. Called with every read, in order; `isLast` exactly once. */
  push(chunk: Buffer, isLast: boolean): Buffer;
  /** The bytes that tell the client of a cut stream; the connection is closed afterwards. */
  cut(message: string, isTimeout: boolean): Buffer;
}
