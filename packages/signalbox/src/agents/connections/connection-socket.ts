/** The client's end of a connection, as the connection uses it: a WebSocket of this process, or one that ends at another node. */
export interface ConnectionSocket {
  /** Sends a whole frame. If the reader is too slow, the connection is closed instead. */
  write(frame: Buffer): void;
  /** True from the close frame on. */
  readonly isClosed: boolean;
  /** Sends a close frame. */
  close(code: number, reason: string): void;
  /** As that of a `WebSocket`. */
  readonly readyState: number;
  /** Bytes that wait for a slow reader. */
  readonly bufferedAmount: number;
  /** Facts of the connection have changed that its successor needs if the instance moves. Undefined where no instance moves. */
  readonly onFacts?: (() => void) | undefined;
}

/** What a connection takes along when its instance moves to another node. */
export interface ConnectionFacts {
  readonly tags: readonly string[];
  readonly state: unknown;
  readonly attachment: unknown;
  readonly isReadonlyForAgent: boolean;
  readonly hasProtocol: boolean;
  /** When the connection joined, in milliseconds since 1970: the younger of two connections with one id replaces the older one. */
  readonly joinedAt: number;
}
