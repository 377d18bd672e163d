/** The other nodes of a cluster, as an area sees them. */

export interface OtherNodes {
  /** Answers a question of another node. Registered before the areas start. */
  serve(name: string, answer: (payload: Buffer) => Promise<Uint8Array>): void;
  /** The answers of all nodes that are alive. Rejects if the signal aborts before all have answered. */
  askAll(name: string, payload: Uint8Array, signal: AbortSignal): Promise<Buffer[]>;
}
