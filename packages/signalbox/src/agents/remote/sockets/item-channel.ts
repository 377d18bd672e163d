/**
 * Items in order, exactly once, over the successive link streams of one session: a link that breaks for a moment loses nothing and doubles nothing.
 *
 *   idle ─ attach(stream) → attached ─ the stream fails → idle ─ attach(next stream) → …   ─ close → closed
 *
 * Invariants:
 * 1. Items leave in the order of `send`. What the other side has not acknowledged is kept, and sent again on the next stream.
 * 2. An item is delivered once: the sides exchange how many they have received before a stream continues.
 * 3. Items of one turn of the event loop leave together.
 * 4. While the stream takes no more, items wait without bytes: what is encoded when it leaves, and replaces what it follows, is kept once.
 */
import type { LinkFailure, LinkStream } from "../../../engines/node-link/index.ts";
import {
  decodeCount,
  encodeCount,
  encodeItem,
  type Item,
  ITEM_KINDS,
  ItemError,
  ItemReader,
} from "./socket-items.ts";

/** An item that waits to be sent; its bytes are made when it leaves. */
export interface Outgoing {
  encode(): Buffer[];
  /** The other side has it. */
  onArrived?(): void;
}

/** Acknowledgements are sent after this many items or bytes, or after this time. */
const ACK_ITEMS = 64;
const ACK_BYTES = 64 * 1024;
const ACK_MS = 20;
/** Pieces of up to this size are copied into one write. */
const JOIN_BYTES = 32 * 1024;

interface Sent {
  readonly pieces: readonly Buffer[];
  readonly item: Outgoing;
}

export class ItemChannel {
  readonly #onItem: (item: Item) => void;
  #stream: LinkStream | null = null;
  #queue: Outgoing[] = [];
  /** Sent and not acknowledged; the first one has the number `#arrived`. */
  #sent: Sent[] = [];
  /** How many items the other side has. */
  #arrived = 0;
  #received = 0;
  #acknowledged = 0;
  #unacknowledgedBytes = 0;
  #ackTimer: NodeJS.Timeout | undefined;
  #isFlushing = false;
  /** The stream takes no more at the moment. */
  #isBlocked = false;
  #isClosed = false;

  constructor(onItem: (item: Item) => void) {
    this.#onItem = onItem;
  }

  /** How many items have arrived here. */
  get received(): number {
    return this.#received;
  }

  /** How many items have left. */
  get sent(): number {
    return this.#arrived + this.#sent.length;
  }

  /** The item that was queued last, if it has not left yet. */
  get last(): Outgoing | undefined {
    return this.#queue.at(-1);
  }

  /** Returns the number of the item: the other side has it when it has received more items than that. */
  send(item: Outgoing): number {
    const number = this.#arrived + this.#sent.length + this.#queue.length;
    if (this.#isClosed) return number;
    this.#queue.push(item);
    if (!this.#isFlushing) {
      this.#isFlushing = true;
      queueMicrotask(() => {
        this.#isFlushing = false;
        this.flush();
      });
    }
    return number;
  }

  /**
   * Continues on a stream. `arrived` is how many items the other side has; `first` is written before all others. Throws `ItemError` if the count
   * cannot be true.
   */
  attach(stream: LinkStream, arrived: number, first: readonly Buffer[] = []): void {
    this.#confirm(arrived);
    const previous = this.#stream;
    this.#stream = stream;
    previous?.reset();
    this.#isBlocked = false;
    if (first.length > 0) stream.write(Buffer.concat(first));
    for (const { pieces } of this.#sent) this.#write(pieces);
    this.#acknowledged = this.#received;
    this.flush();
  }

  /** An item has arrived on a stream. Throws `ItemError`. */
  deliver(stream: LinkStream, item: Item): void {
    if (this.#stream !== stream || this.#isClosed) return;
    if (item.kind === ITEM_KINDS.ack) {
      this.#confirm(decodeCount(item.payload));
      return;
    }
    this.#received += 1;
    this.#unacknowledgedBytes += item.payload.length;
    this.#onItem(item);
    this.#acknowledgeLater();
  }

  /** The stream has ended or failed; another one may continue. False if it is not the attached one. */
  detach(stream: LinkStream): boolean {
    if (this.#stream !== stream) return false;
    this.#stream = null;
    clearTimeout(this.#ackTimer);
    this.#ackTimer = undefined;
    return true;
  }

  /** The stream takes more again. */
  drained(stream: LinkStream): void {
    if (this.#stream !== stream) return;
    this.#isBlocked = false;
    this.flush();
  }

  /** Sends what waits. Without a stream, or while it takes no more, the items stay in the queue. */
  flush(): void {
    if (!this.#isBlocked) this.#flush();
  }

  #flush(isLast = false): void {
    if (this.#stream === null || this.#queue.length === 0) return;
    const queue = this.#queue;
    this.#queue = [];
    let joined: Buffer[] = [];
    let joinedBytes = 0;
    const writeJoined = () => {
      if (joined.length > 0)
        this.#write([joined.length === 1 ? (joined[0] as Buffer) : Buffer.concat(joined)]);
      joined = [];
      joinedBytes = 0;
    };
    let next = 0;
    for (; next < queue.length && (!this.#isBlocked || isLast); next++) {
      const item = queue[next] as Outgoing;
      const pieces = item.encode();
      this.#sent.push({ pieces, item });
      for (const piece of pieces) {
        if (piece.length > JOIN_BYTES) {
          writeJoined();
          this.#write([piece]);
          continue;
        }
        joined.push(piece);
        joinedBytes += piece.length;
        if (joinedBytes > JOIN_BYTES) writeJoined();
      }
    }
    if (next < queue.length) this.#queue = queue.slice(next);
    if (this.#received > this.#acknowledged) joined.push(...this.#takeAck());
    writeJoined();
  }

  /** Nothing is delivered or sent any more. The stream ends after what was sent before. */
  close(): void {
    if (this.#isClosed) return;
    this.#flush(true);
    this.#isClosed = true;
    clearTimeout(this.#ackTimer);
    this.#stream?.end();
    this.#queue = [];
    this.#sent = [];
  }

  #write(pieces: readonly Buffer[]): void {
    for (const piece of pieces) if (this.#stream?.write(piece) === false) this.#isBlocked = true;
  }

  /** The other side has `count` items. */
  #confirm(count: number): void {
    const newly = count - this.#arrived;
    if (newly < 0 || newly > this.#sent.length)
      throw new ItemError("an impossible number of items has arrived");
    this.#arrived = count;
    if (newly === 0) return;
    for (const { item } of this.#sent.splice(0, newly)) item.onArrived?.();
  }

  #acknowledgeLater(): void {
    const items = this.#received - this.#acknowledged;
    if (items === 0 || this.#isClosed) return;
    if (items >= ACK_ITEMS || this.#unacknowledgedBytes >= ACK_BYTES) this.#write(this.#takeAck());
    else
      this.#ackTimer ??= setTimeout(() => {
        this.#ackTimer = undefined;
        if (this.#received > this.#acknowledged) this.#write(this.#takeAck());
      }, ACK_MS).unref();
  }

  #takeAck(): Buffer[] {
    this.#acknowledged = this.#received;
    this.#unacknowledgedBytes = 0;
    return encodeItem(ITEM_KINDS.ack, encodeCount(this.#received));
  }
}

export interface ItemStreamEvents {
  onItem(item: Item): void;
  /** Null: the other side ended the stream in order. */
  onEnd(failure: LinkFailure | null): void;
  onDrain(): void;
}

/** Reads items from a stream. What cannot be read, or makes `onItem` throw, ends the stream with a failure of the code `defect`. */
export function readItems(stream: LinkStream, { onItem, onEnd, onDrain }: ItemStreamEvents): void {
  const reader = new ItemReader();
  stream.start({
    onData(bytes) {
      try {
        for (const item of reader.push(bytes)) onItem(item);
      } catch (error) {
        const failure = { code: "defect", message: error instanceof Error ? error.message : String(error) };
        stream.reset(failure);
        onEnd(failure);
      }
    },
    onEnd: () => onEnd(null),
    onFailure: onEnd,
    onDrain,
  });
}

/** Reads a stream to which the channel is attached. */
export function readAttached(
  channel: ItemChannel,
  stream: LinkStream,
  onEnd: (failure: LinkFailure | null) => void,
): void {
  readItems(stream, {
    onItem: (item) => channel.deliver(stream, item),
    onDrain: () => channel.drained(stream),
    onEnd,
  });
}

export interface WelcomeEvents {
  /** The channel goes on: it is attached here. */
  onWelcome(payload: Buffer): void;
  /** The stream ended before the welcome. */
  onRefused(failure: LinkFailure | null): void;
  onEnd(failure: LinkFailure | null): void;
}

/** Reads a stream that this side has opened, and that the other side begins with a welcome. */
export function readWelcomed(channel: ItemChannel, stream: LinkStream, events: WelcomeEvents): void {
  let isWelcome = false;
  readItems(stream, {
    onItem: (item) => {
      if (isWelcome) channel.deliver(stream, item);
      else if (item.kind !== ITEM_KINDS.welcome) throw new ItemError("the other node did not say welcome");
      else {
        events.onWelcome(item.payload);
        isWelcome = true;
      }
    },
    onDrain: () => channel.drained(stream),
    onEnd: (failure) => (isWelcome ? events.onEnd(failure) : events.onRefused(failure)),
  });
}
