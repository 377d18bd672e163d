/**
 * The first argument of a streaming method: each `send` is one frame, `end` or `error` is the last. Frames pass the output gate.
 *
 *   open ─ end, error → closed
 *    └ the socket closes, or the method fails → closed, and `signal` is aborted
 */
export class StreamingResponse<Chunk = unknown> {
  readonly #emit: (event: StreamEvent) => void;
  #isClosed = false;
  #abort: AbortController | null = null;
  #cutReason: Error | null = null;

  /** @internal */
  constructor(emit: (event: StreamEvent) => void) {
    this.#emit = emit;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Aborted when the stream has no receiver any more: the socket has closed, or the method has failed. */
  get signal(): AbortSignal {
    if (this.#abort === null) {
      this.#abort = new AbortController();
      if (this.#cutReason !== null) this.#abort.abort(this.#cutReason);
    }
    return this.#abort.signal;
  }

  /** Returns false when the stream has ended. */
  send(chunk: Chunk): boolean {
    if (this.#isClosed) return false;
    this.#emit({ kind: "chunk", value: chunk });
    return true;
  }

  end(finalChunk?: Chunk): boolean {
    if (this.#isClosed) return false;
    this.#isClosed = true;
    this.#emit({ kind: "end", value: finalChunk });
    return true;
  }

  error(message: string): boolean {
    if (this.#isClosed) return false;
    this.#isClosed = true;
    this.#emit({ kind: "error", message });
    return true;
  }

  /** @internal Closes the stream without a frame. */
  cut(reason: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cutReason = reason;
    this.#abort?.abort(reason);
  }
}

export type StreamEvent =
  | { readonly kind: "chunk"; readonly value: unknown }
  | { readonly kind: "end"; readonly value: unknown }
  | { readonly kind: "error"; readonly message: string };
