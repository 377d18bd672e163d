/**
 * Calls without a response.
 *
 * 1. Every call settles exactly once: response, error, timeout, abort, or the end of the connection it was sent on.
 * 2. A call is never sent twice. When its connection ends, it fails with reason `closed`, because the method may have run.
 * 3. A call in the outbox survives a reconnect; timeout and abort remove it from the outbox.
 */
import type { RpcRequestFrame, RpcResponseFrame } from "@signalbox/protocol";
import { AgentError } from "./agent-error.ts";
import type { OutboxEntry } from "./outbox.ts";

export interface CallOptions {
  /** Milliseconds from the call to its final response, including the wait for a connection; 0: no limit. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** Receives the outcome of a call. */
export interface CallReceiver {
  push(chunk: unknown): void;
  finish(result: unknown): void;
  fail(error: unknown): void;
}

export interface CallCarrier {
  /** Sends or queues the entry. Throws if neither is possible. */
  carry(entry: OutboxEntry): void;
  withdraw(entry: OutboxEntry): void;
}

interface PendingCall {
  readonly receiver: CallReceiver;
  isSent: boolean;
  /** Removes timer and abort listener. */
  release(): void;
}

export class PendingCalls {
  readonly #calls = new Map<string, PendingCall>();
  readonly #carrier: CallCarrier;
  #lastId = 0;

  constructor(carrier: CallCarrier) {
    this.#carrier = carrier;
  }

  get size(): number {
    return this.#calls.size;
  }

  /** Starts a call and returns a function that drops it. A call that cannot start fails through its receiver. */
  start(method: string, args: readonly unknown[], options: CallOptions, receiver: CallReceiver): () => void {
    try {
      options.signal?.throwIfAborted();
      const id = String(++this.#lastId);
      const frame: RpcRequestFrame = { type: "rpc", id, method, args };
      return this.#carry(id, JSON.stringify(frame), method, options, receiver);
    } catch (error) {
      receiver.fail(error);
      return () => {};
    }
  }

  #carry(
    id: string,
    text: string,
    method: string,
    { signal, timeoutMs = 0 }: CallOptions,
    receiver: CallReceiver,
  ): () => void {
    const entry: OutboxEntry = { kind: "call", text, onSent: () => (call.isSent = true) };
    const forget = () => {
      this.#carrier.withdraw(entry);
      return this.#settle(id);
    };
    const onAbort = () => forget()?.receiver.fail(signal?.reason);
    const onTimeout = () =>
      forget()?.receiver.fail(new AgentError("timeout", `${method} timed out after ${timeoutMs} ms`));
    const timer = timeoutMs > 0 ? setTimeout(onTimeout, timeoutMs) : undefined;
    signal?.addEventListener("abort", onAbort, { once: true });
    const call: PendingCall = {
      receiver,
      isSent: false,
      release() {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
      },
    };
    // Registered before sending, so that a response finds the call; removed if sending fails.
    this.#calls.set(id, call);
    try {
      this.#carrier.carry(entry);
    } catch (error) {
      this.#settle(id);
      throw error;
    }
    return () => void forget();
  }

  receive(frame: RpcResponseFrame): void {
    if (!frame.success) this.#settle(frame.id)?.receiver.fail(new AgentError("call_failed", frame.error));
    else if (frame.done) this.#settle(frame.id)?.receiver.finish(frame.result);
    else this.#calls.get(frame.id)?.receiver.push(frame.result);
  }

  /** The connection ended: calls that were sent on it fail. */
  failSent(error: AgentError): void {
    for (const [id, call] of this.#calls) {
      if (call.isSent) this.#settle(id)?.receiver.fail(error);
    }
  }

  failAll(error: AgentError): void {
    for (const id of this.#calls.keys()) this.#settle(id)?.receiver.fail(error);
  }

  #settle(id: string): PendingCall | undefined {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    call?.release();
    return call;
  }
}
