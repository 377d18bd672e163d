/** The error of a connection, with a reason to branch on. */

/**
 * `closed`: the connection ended after the request was sent; the method may have run.
 * `final`: the server closed the connection with a final code (1008 or 4000–4999), or the client closed it.
 * `timeout`: no response in time; the method may still run.
 * `buffer_full`: the limit of waiting frames or results is reached; the frame was not sent.
 * `call_failed`: the method failed; the message is the agent's.
 */
export type AgentErrorReason = "closed" | "final" | "timeout" | "buffer_full" | "call_failed";

export class AgentError extends Error {
  override readonly name = "AgentError";
  readonly reason: AgentErrorReason;
  /** The WebSocket close code, if a close is the cause. */
  readonly closeCode: number | undefined;

  constructor(reason: AgentErrorReason, message: string, closeCode?: number) {
    super(message);
    this.reason = reason;
    this.closeCode = closeCode;
  }
}
