/**
 * Global names of the originals' runtime that Node lacks, as far as programs for agents use them. Except for the user agent, existing names are not
 * replaced.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { knowLength } from "../body-lengths.ts";
import { HTMLRewriter } from "../html/html-rewriter.ts";
import { EventSource } from "./event-source.ts";
import { addGlobalEvents } from "./global-events.ts";

type Bytes = ArrayBuffer | ArrayBufferView;

/** A stream whose readable side gives the bytes of its writable side. */
class IdentityTransformStream extends TransformStream<Uint8Array, Uint8Array> {}

/** Fails unless exactly `length` bytes pass. */
class FixedLengthStream extends TransformStream<Uint8Array, Uint8Array> {
  constructor(length: number | bigint) {
    const expected = Number(length);
    let passed = 0;
    super({
      transform(chunk, controller) {
        passed += chunk.byteLength;
        if (passed > expected) throw new TypeError(`a FixedLengthStream of ${expected} bytes got more`);
        controller.enqueue(chunk);
      },
      flush() {
        if (passed < expected) throw new TypeError(`a FixedLengthStream of ${expected} bytes got ${passed}`);
      },
    });
    knowLength(this.readable, expected);
  }
}

/** Computes the digest of everything that is written to it. */
class DigestStream extends WritableStream<Bytes | string> {
  /** Resolves with the digest when the stream is closed. */
  readonly digest: Promise<ArrayBuffer>;
  #written = 0n;

  constructor(algorithm: string | { readonly name: string }) {
    const name = (typeof algorithm === "string" ? algorithm : algorithm.name).toLowerCase().replace("-", "");
    const hash = createHash(name);
    const { promise, resolve, reject } = Promise.withResolvers<ArrayBuffer>();
    super({
      write: (chunk) => {
        const bytes = typeof chunk === "string" ? Buffer.from(chunk) : toView(chunk);
        this.#written += BigInt(bytes.byteLength);
        hash.update(bytes);
      },
      close: () => resolve(new Uint8Array(hash.digest()).buffer),
      abort: (reason) => reject(reason),
    });
    // A program that aborts the stream need not look at the digest.
    promise.catch(() => undefined);
    this.digest = promise;
  }

  get bytesWritten(): bigint {
    return this.#written;
  }
}

/** A cache that holds nothing: every look-up misses, which the interface allows. Responses are cached by a proxy in front of the server. */
const EMPTY_CACHE = {
  match: async () => undefined,
  put: async (_request: unknown, response: Response) => {
    await response.body?.cancel();
  },
  delete: async () => false,
};

/** By this text libraries choose the code for the originals' runtime; hono's `env(c)` returns the bindings then, and the process's variables otherwise. */
const USER_AGENT = "Cloudflare-Workers";

export function addRuntimeGlobals(compatibilityFlags: Readonly<Record<string, boolean>>): void {
  Object.defineProperty(navigator, "userAgent", { value: USER_AGENT, configurable: true });
  addMissing(globalThis, {
    IdentityTransformStream,
    FixedLengthStream,
    scheduler: {
      wait: (delayMs: number, options?: { signal?: AbortSignal }) => wait(delayMs, undefined, options),
    },
    caches: { default: EMPTY_CACHE, open: async () => EMPTY_CACHE },
    self: globalThis,
    Cloudflare: { compatibilityFlags },
    EventSource,
    HTMLRewriter,
  });
  addMissing(crypto, { DigestStream });
  addGlobalEvents();
  addMissing(Object.getPrototypeOf(crypto.subtle) as object, {
    // As in the originals: inputs of different lengths are an error.
    timingSafeEqual: (a: Bytes, b: Bytes) => timingSafeEqual(toView(a), toView(b)),
  });
}

function toView(bytes: Bytes): Uint8Array {
  return ArrayBuffer.isView(bytes)
    ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    : new Uint8Array(bytes);
}

function addMissing(target: object, values: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(values))
    if (!(name in target)) Object.defineProperty(target, name, { value, configurable: true, writable: true });
}
