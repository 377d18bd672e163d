/** Everything that can go wrong with a live connection, as one class with a reason to branch on. */

/**
 * `closed`: the connection went away after the request was sent; it may or may not have run.
 * `final`: the server said not to come back (close code 1008 or 4000–4999), or the connection was closed by this side.
 * `timeout`: no answer in time; it may still run.
 * `buffer_full`: too much is waiting to be sent or read; nothing was sent.
 * `call_failed`: the agent answered with an error; the message is the agent's.
 */
export type AgentErrorReason = "closed" | "final" | "timeout" | "buffer_full" | "call_failed";

export class AgentError extends Error {
  override readonly name = "AgentError";
  readonly reason: AgentErrorReason;
  /** The WebSocket close code, where a close is the cause. */
  readonly closeCode: number | undefined;

  constructor(reason: AgentErrorReason, message: string, closeCode?: number) {
    super(message);
    this.reason = reason;
    this.closeCode = closeCode;
  }
}
