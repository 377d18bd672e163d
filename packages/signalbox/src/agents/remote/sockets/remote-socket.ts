/**
 * The client's end of a connection whose WebSocket is at another node.
 *
 * Invariant: the bytes on their way to the edge are bounded for each connection, as those for a slow reader are. Beyond the limit the connection
 * is closed with 1013 (try again later); other connections of the edge go on.
 */
import type { ConnectionLimits } from "../../connections/connection-outlet.ts";
import type { ConnectionSocket } from "../../connections/connection-socket.ts";
import { MAX_ITEM_BYTES } from "./socket-items.ts";

/** What a remote socket needs of its session. */
export interface RemoteOutput {
  write(socket: RemoteSocket, frame: Buffer): void;
  close(socket: RemoteSocket, code: number, reason: string): void;
  factsChanged(socket: RemoteSocket): void;
}

/** What may be on its way besides what waits: acknowledgements take a round trip, and come in groups. */
const IN_FLIGHT_BYTES = 1024 * 1024;
/** A larger frame would not fit into an item with its receivers, and the edge would end the session of all sockets. */
const MAX_FRAME_BYTES = MAX_ITEM_BYTES / 2;
const OPEN = 1;
const CLOSING = 2;
const CLOSED = 3;

export class RemoteSocket implements ConnectionSocket {
  /** Identifies the connection in its session. */
  readonly number: number;
  readonly #output: RemoteOutput;
  readonly #limits: ConnectionLimits;
  /** Bytes that the edge has not acknowledged. */
  bufferedAmount = 0;
  #readyState = OPEN;

  constructor(number: number, output: RemoteOutput, limits: ConnectionLimits) {
    this.number = number;
    this.#output = output;
    this.#limits = limits;
  }

  get readyState(): number {
    return this.#readyState;
  }

  get isClosed(): boolean {
    return this.#readyState !== OPEN;
  }

  readonly onFacts = (): void => this.#output.factsChanged(this);

  write(frame: Buffer): void {
    if (this.isClosed) return;
    if (frame.length > MAX_FRAME_BYTES) this.close(1009, "the message is too large");
    else if (this.bufferedAmount > this.#limits.maxBufferedBytes + IN_FLIGHT_BYTES)
      this.close(1013, "too slow");
    else {
      this.bufferedAmount += frame.length;
      this.#output.write(this, frame);
    }
  }

  close(code: number, reason: string): void {
    if (this.isClosed) return;
    this.#readyState = CLOSING;
    this.#output.close(this, code, reason);
  }

  /** The WebSocket has closed. */
  markClosed(): void {
    this.#readyState = CLOSED;
  }
}
