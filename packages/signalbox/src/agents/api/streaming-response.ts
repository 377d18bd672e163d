/** The first argument of a streaming method: each `send` is one frame, `end` or `error` is the last. Frames pass the output gate. */
export class StreamingResponse<Chunk = unknown> {
  readonly #emit: (event: StreamEvent) => void;
  #isClosed = false;

  /** @internal */
  constructor(emit: (event: StreamEvent) => void) {
    this.#emit = emit;
  }

  get isClosed(): boolean {
    return this.#isClosed;
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
}

export type StreamEvent =
  | { readonly kind: "chunk"; readonly value: unknown }
  | { readonly kind: "end"; readonly value: unknown }
  | { readonly kind: "error"; readonly message: string };
