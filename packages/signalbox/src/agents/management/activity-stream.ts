/** The activity of an instance as server-sent events, until the reader closes the stream. */
import { Readable } from "node:stream";
import type { ActivityEvent, ActivityHub } from "../instance/activity.ts";

/** Interval of comment lines, which keep proxies from closing an idle stream. */
const KEEP_ALIVE_MS = 15_000;
/** Beyond this, events are dropped, and the reader receives their number. */
const MAX_BUFFERED_BYTES = 256 * 1024;

export class ActivityStreams {
  readonly #hub: ActivityHub;
  /** Open streams, each with a function that stops its events: pushing to an ended stream is an error. */
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
    const stopEvents = () => {
      clearInterval(keepAlive);
      stop();
    };
    stream.once("close", () => {
      stopEvents();
      this.#open.delete(stream);
    });
    stream.push(": listening\n\n");
    this.#open.set(stream, stopEvents);
    return stream;
  }

  /** Ends every stream, so that the listener can close. */
  close(): void {
    for (const [stream, stopEvents] of this.#open) {
      stopEvents();
      stream.push(null);
    }
  }
}
