/** Shared by the agents' tests: the fixture module, WebSockets that collect frames, webhook events. */
import { once } from "node:events";
import { join } from "node:path";
import { WebSocket } from "ws";
import type { WebhookEvent } from "../../packages/signalbox/src/agents/index.ts";
import { ROOT_TOKEN } from "./root-token.ts";
import { parseJson } from "./send-request.ts";

export const TEST_AGENTS = join(import.meta.dirname, "../fixtures/test-agents.ts");

// oxlint-disable-next-line typescript/no-explicit-any -- tests read any member of a frame
type Frame = any;

/** A WebSocket that keeps the received frames. */
export class RawClient {
  readonly socket: WebSocket;
  readonly received: Frame[] = [];
  closeCode: number | undefined;
  closeReason = "";
  #waiting: (() => void)[] = [];

  constructor(url: string, options: { token?: string | null; headers?: Record<string, string> } = {}) {
    const token = options.token === undefined ? ROOT_TOKEN : options.token;
    this.socket = new WebSocket(url.replace(/^http/, "ws"), {
      headers: { ...options.headers, ...(token === null ? {} : { authorization: `Bearer ${token}` }) },
    });
    this.socket.on("message", (data, isBinary) => {
      this.received.push(isBinary ? data : parseJson((data as Buffer).toString("utf8")));
      this.#wake();
    });
    this.socket.on("close", (code, reason) => {
      this.closeCode = code;
      this.closeReason = String(reason);
      this.#wake();
    });
    this.socket.on("error", () => undefined);
  }

  async opened(): Promise<this> {
    if (this.socket.readyState === WebSocket.CONNECTING) await once(this.socket, "open");
    return this;
  }

  send(value: unknown): void {
    this.socket.send(typeof value === "string" ? value : JSON.stringify(value));
  }

  /** The first matching frame, received already or later; removed from `received`. */
  async next(fits: (frame: Frame) => boolean = () => true): Promise<Frame> {
    for (;;) {
      const index = this.received.findIndex((frame) => fits(frame));
      if (index !== -1) return this.received.splice(index, 1)[0];
      if (this.closeCode !== undefined) throw new Error(`closed with ${this.closeCode} ${this.closeReason}`);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Consumes the identity and state frames of a new connection. */
  async greeted(): Promise<void> {
    await this.next((frame) => frame.type === "cf_agent_identity");
    await this.next((frame) => frame.type === "cf_agent_state");
  }

  async closed(): Promise<number> {
    while (this.closeCode === undefined) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return this.closeCode;
  }

  async call(method: string, ...args: unknown[]): Promise<Frame> {
    const id = `${method}-${Math.random()}`;
    this.send({ type: "rpc", id, method, args });
    return this.next((frame) => frame?.id === id);
  }

  close(): void {
    this.socket.close();
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

export function webhookEvent(id: string, type = "push"): WebhookEvent {
  return {
    id,
    source: "generic",
    type,
    action: null,
    timestamp: new Date().toISOString(),
    payload: { id },
    headers: { "content-type": "application/json" },
    rawBody: Buffer.from(JSON.stringify({ id })),
    title: type,
    description: null,
    url: null,
    actor: null,
  };
}
