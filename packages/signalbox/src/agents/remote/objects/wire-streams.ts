/**
 * Streams on the wire: the side that has the stream offers a target that reads or writes it; the other side makes a stream of the calls.
 *
 * The reader pulls: at most `AHEAD` pieces are on their way or wait for it, and nothing is read before its program reads. A writer waits for each
 * piece to be taken.
 */
import type { CallTarget } from "../../objects/rpc-stub.ts";

/** Pieces that are requested before the reader needs them: one round trip for several small pieces. */
const AHEAD = 4;

export interface StreamTarget extends CallTarget {
  /** The other side needs the stream no more, or is gone. */
  dispose(): void;
}

/** `read` resolves to bytes, to `{ value }`, or to null at the end. */
export function readableTarget(stream: ReadableStream): StreamTarget {
  let reader: ReadableStreamDefaultReader<unknown> | null = null;
  let isOver = false;
  // Locked at the first read only: an attempt that reached no object leaves the stream as it was.
  const read = () => (reader ??= stream.getReader());
  const cancel = async (reason: unknown) => {
    if (isOver) return;
    isOver = true;
    if (reader !== null) await reader.cancel(reason);
    else if (!stream.locked) await stream.cancel(reason);
  };
  return {
    send: async ([method], args) => {
      if (method === "cancel") {
        await cancel(args?.[0]);
        return undefined;
      }
      const { done, value } = await read().read();
      if (done) {
        isOver = true;
        return null;
      }
      return value instanceof Uint8Array ? value : { value };
    },
    dispose: () => {
      // A source that cannot be cancelled has ended.
      cancel(new Error("the reader is gone")).catch(() => undefined);
    },
  };
}

export function readableOf(target: CallTarget): ReadableStream {
  const pieces: Promise<unknown>[] = [];
  let isOver = false;
  const end = () => {
    isOver = true;
    target.dispose?.();
  };
  return new ReadableStream<unknown>(
    {
      async pull(controller) {
        while (!isOver && pieces.length < AHEAD) {
          const piece = target.send(["read"], []);
          // Failures are reported in order, by the read that gets to them.
          piece.catch(() => undefined);
          pieces.push(piece);
        }
        try {
          const piece = await pieces.shift();
          if (piece === null || piece === undefined) {
            end();
            controller.close();
          } else
            controller.enqueue(piece instanceof Uint8Array ? piece : (piece as { value: unknown }).value);
        } catch (error) {
          end();
          throw error;
        }
      },
      async cancel(reason) {
        try {
          await target.send(["cancel"], [toPlain(reason)]);
        } finally {
          end();
        }
      },
    },
    { highWaterMark: 0 },
  );
}

export function writableTarget(stream: WritableStream): StreamTarget {
  let writer: WritableStreamDefaultWriter<unknown> | null = null;
  let isOver = false;
  const get = () => (writer ??= stream.getWriter());
  return {
    send: async ([method], args) => {
      const [value] = args ?? [];
      if (method === "write") await get().write(value);
      else if (method === "close") {
        isOver = true;
        await get().close();
      } else {
        isOver = true;
        await get().abort(value);
      }
      return undefined;
    },
    dispose: () => {
      if (isOver) return;
      isOver = true;
      // A stream that cannot be aborted has ended.
      get()
        .abort(new Error("the writer is gone"))
        .catch(() => undefined);
    },
  };
}

export function writableOf(target: CallTarget): WritableStream {
  const last = async (method: string, args: readonly unknown[]) => {
    try {
      await target.send([method], args);
    } finally {
      target.dispose?.();
    }
  };
  return new WritableStream<unknown>({
    write: async (piece) => {
      await target.send(["write"], [piece]);
    },
    close: () => last("close", []),
    abort: (reason) => last("abort", [toPlain(reason)]),
  });
}

/** A reason may be anything; what is no error and not plain is told as text. */
function toPlain(reason: unknown): unknown {
  if (reason instanceof Error) return reason;
  return typeof reason === "object" || typeof reason === "function" ? toText(reason) : reason;
}

const toText: (value: unknown) => string = String;
