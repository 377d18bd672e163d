/**
 * Calls that have no answer yet.
 *
 * 1. Every call settles exactly once: answer, error, timeout, abort, or the end of the connection it was sent on.
 * 2. A call that was sent is never sent again: when its connection ends, it fails with reason `closed`, because it may have run.
 * 3. A call that still waits in the outbox survives a reconnect; timeout and abort take it out of the outbox.
 */
import type { RpcRequestFrame, RpcResponseFrame } from "@signalbox/protocol";
import { AgentError } from "./agent-error.ts";
import type { OutboxEntry } from "./outbox.ts";

export interface CallOptions {
  /** Milliseconds from the call to its last answer, waiting for a connection included; 0 means no limit. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** Who gets the answer. */
export interface CallReceiver {
  push(piece: unknown): void;
  finish(result: unknown): void;
  fail(error: unknown): void;
}

export interface CallCarrier {
  /** Sends or keeps the entry; throws when it can do neither. */
  carry(entry: OutboxEntry): void;
  withdraw(entry: OutboxEntry): void;
}

interface PendingCall {
  readonly receiver: CallReceiver;
  isSent: boolean;
  /** Stops timer and abort listener. */
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

  /** Starts a call; returns the function that forgets it. A call that cannot start fails through its receiver. */
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
      forget()?.receiver.fail(new AgentError("timeout", `${method} was not answered within ${timeoutMs} ms`));
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
    // Registered before it is carried, so that an answer finds it; taken back when it cannot be carried.
    this.#calls.set(id, call);
    try {
      this.#carrier.carry(entry);
    } catch (error) {
      this.#settle(id);
      throw error;
    }
    return () => void forget();
  }

  answer(frame: RpcResponseFrame): void {
    if (!frame.success) this.#settle(frame.id)?.receiver.fail(new AgentError("call_failed", frame.error));
    else if (frame.done) this.#settle(frame.id)?.receiver.finish(frame.result);
    else this.#calls.get(frame.id)?.receiver.push(frame.result);
  }

  /** The connection ended: calls that went out on it cannot be answered any more. */
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
