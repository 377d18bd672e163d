/** An instance's activity as server-sent events, for as long as somebody reads them. */
import { Readable } from "node:stream";
import type { ActivityEvent, ActivityHub } from "../instance/activity.ts";

/** Comment lines keep proxies from closing a quiet stream. */
const KEEP_ALIVE_MS = 15_000;
/** A reader that is further behind misses events rather than memory. */
const MAX_BUFFERED_BYTES = 256 * 1024;

export class ActivityStreams {
  readonly #hub: ActivityHub;
  /** Each with what silences it: a stream that has ended takes nothing any more, and says so with an error. */
  readonly #open = new Map<Readable, () => void>();

  constructor(hub: ActivityHub) {
    this.#hub = hub;
  }

  open(key: string): Readable {
    let missed = 0;
    const stream = new Readable({ read: () => undefined });
    const push = (event: ActivityEvent) => {
      if (stream.readableLength > MAX_BUFFERED_BYTES) {
        missed += 1;
        return;
      }
      if (missed > 0) stream.push(`event: missed\ndata: ${missed}\n\n`);
      missed = 0;
      stream.push(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    };
    const stop = this.#hub.listen(key, push);
    const keepAlive = setInterval(() => stream.push(":\n\n"), KEEP_ALIVE_MS).unref();
    const silence = () => {
      clearInterval(keepAlive);
      stop();
    };
    stream.once("close", () => {
      silence();
      this.#open.delete(stream);
    });
    stream.push(": listening\n\n");
    this.#open.set(stream, silence);
    return stream;
  }

  /** Ends every stream, so that the listener can close. */
  close(): void {
    for (const [stream, silence] of this.#open) {
      silence();
      stream.push(null);
    }
  }
}
