/**
 * Global names of the originals' runtime that Node lacks, as far as programs for agents use them. Except for the user agent, existing names are not
 * replaced.
 */
import { timingSafeEqual } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { knowLength } from "../body-lengths.ts";

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

export function addRuntimeGlobals(): void {
  Object.defineProperty(navigator, "userAgent", { value: USER_AGENT, configurable: true });
  addMissing(globalThis, {
    IdentityTransformStream,
    FixedLengthStream,
    scheduler: {
      wait: (delayMs: number, options?: { signal?: AbortSignal }) => wait(delayMs, undefined, options),
    },
    caches: { default: EMPTY_CACHE, open: async () => EMPTY_CACHE },
  });
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
