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
  send(message: string | Uint8Array): void;
  /** Stock clients do not reconnect after the codes 1008 and 4000–4999. */
  close(code?: number, reason?: string): void;
}

export interface ConnectionContext {
  /** The request that opened the connection. */
  readonly request: Request;
}
