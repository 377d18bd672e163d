/** A WebSocket connection, as agents see it. It stays open while the instance is not in memory. */
export interface Connection<State = unknown> {
  /** Chosen by the client and kept across reconnects. */
  readonly id: string;
  /** Path and query of the handshake, without credentials. */
  readonly uri: string;
  /** The id and the result of `getConnectionTags`. */
  readonly tags: readonly string[];
  /** The value that the agent set last; null before the first. */
  readonly state: State | null;
  setState(state: State | null | ((previous: State | null) => State | null)): State | null;
  /** Sends the message when everything that the instance has written so far is durable. */
  send(message: ConnectionMessage): void;
  /** Stock clients do not reconnect after the codes 1008 and 4000–4999. */
  close(code?: number, reason?: string): void;

  /** 1 for an open connection, 2 while it closes, 3 when it is closed. */
  readonly readyState: number;
  readonly url: string;
  readonly binaryType: "arraybuffer";
  /** Bytes that wait for a slow reader. */
  readonly bufferedAmount: number;
  /**
   * Calls the listener in the turn of each `message` (a `MessageEvent`) that is not part of the protocol, or of the `close` (a `CloseEvent`).
   * While a connection has listeners, the instance stays in memory.
   */
  addEventListener(type: string, listener: ConnectionListener, options?: ListenerOptions): void;
  removeEventListener(type: string, listener: ConnectionListener): void;
  /** Keeps a copy of the value with the connection, as `setState` does, for `deserializeAttachment`. */
  serializeAttachment(attachment: unknown): void;
  deserializeAttachment(): unknown;
}

export type ConnectionMessage = string | ArrayBuffer | ArrayBufferView;

export type ConnectionListener = ((event: Event) => void) | { handleEvent(event: Event): void };

export interface ListenerOptions {
  readonly once?: boolean;
}

export interface ConnectionContext {
  /** The request that opened the connection. */
  readonly request: Request;
  /** What `agents.authorize` returned as `props`. */
  readonly props?: unknown;
}

/** The second argument of `onRequest`. */
export interface RequestDetails {
  /** What `agents.authorize` returned as `props`. */
  readonly props?: unknown;
}
