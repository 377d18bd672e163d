/** A live WebSocket connection as agents see it. It outlives the instance's time in memory. */
export interface Connection<State = unknown> {
  /** Chosen by the client and kept over its reconnects. */
  readonly id: string;
  /** Path and query it connected with, without credentials. */
  readonly uri: string;
  /** The id, and what `getConnectionTags` returned. */
  readonly tags: readonly string[];
  /** What the agent last set; null before. */
  readonly state: State | null;
  setState(state: State | null | ((previous: State | null) => State | null)): State | null;
  /** Leaves once everything the instance has written so far is durable. */
  send(message: string | Uint8Array): void;
  /** 1008 and 4000–4999 tell stock clients not to come back. */
  close(code?: number, reason?: string): void;
}

export interface ConnectionContext {
  /** The request that opened the connection. */
  readonly request: Request;
}
