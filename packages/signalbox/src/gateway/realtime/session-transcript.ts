/** What the call log stores of a session: lines of JSON, without sound, up to a size. Each response is followed by a line with its usage and cost. */
import { KeptBody, type SpareMemory } from "../../engines/relay/index.ts";
import type { UsedResponse } from "./session-meter.ts";

const LINE = Buffer.from("\n");

export class SessionTranscript {
  readonly #requests: KeptBody;
  readonly #responses: KeptBody;
  /** Of all messages, also of those that are not kept. */
  sentBytes = 0;
  receivedBytes = 0;

  constructor(maxBytes: number, memory: SpareMemory) {
    this.#requests = new KeptBody(maxBytes, memory);
    this.#responses = new KeptBody(maxBytes, memory);
  }

  sent(bytes: Buffer, isKept: boolean): void {
    this.sentBytes += bytes.length;
    if (isKept) add(this.#requests, bytes);
  }

  /** A message of the provider has arrived; whether it may be stored is not known yet. */
  received({ length }: Buffer): void {
    this.receivedBytes += length;
  }

  /** What the client gets of the provider's messages. */
  passed(bytes: Buffer, isKept: boolean): void {
    if (isKept) add(this.#responses, bytes);
  }

  used({ model, usage, cost, isEstimated }: UsedResponse): void {
    const line = {
      type: "gateway.response.usage",
      model,
      tokens_in: usage.tokensIn,
      tokens_out: usage.tokensOut,
      cost,
      estimated: isEstimated,
    };
    add(this.#responses, Buffer.from(JSON.stringify(line)));
  }

  take(): { readonly request: Buffer; readonly response: Buffer; readonly isWhole: boolean } {
    const isWhole = this.#requests.isWhole && this.#responses.isWhole;
    return { request: this.#requests.take(), response: this.#responses.take(), isWhole };
  }
}

function add(body: KeptBody, bytes: Buffer): void {
  body.add(bytes, false);
  body.add(LINE, false);
}
