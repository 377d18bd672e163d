/**
 * An oracle for work that was accepted: it receives the effects outside of the servers under test, and after a fault it only waits. Nothing asks for an
 * instance then, so whatever goes on was woken by a server.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "vitest";
import { awakeSignal } from "../../packages/signalbox/src/core/awake-time.ts";
import { ROOT_TOKEN } from "./root-token.ts";
import { sendGeneric } from "./webhook-sender.ts";

export const WORK_KINDS = ["queue", "schedule", "alarm", "workflow", "delivery"] as const;
export type WorkKind = (typeof WORK_KINDS)[number];

export class WorkOracle {
  readonly url: string;
  /** A sender, and a caller on a full disk, gives up after this time. What was not answered is not expected. */
  patienceMs = 120_000;
  readonly #server: ReturnType<typeof createServer>;
  readonly #expected = new Set<string>();
  readonly #seen = new Map<string, number>();
  #held = Promise.withResolvers<void>();
  #started = 0;

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    server.on("request", (request, response) => {
      const path = (request.url ?? "").slice(1);
      if (path === "held") {
        void this.#held.promise.then(() => response.end());
        return;
      }
      const id = path.replace(/^effect\//, "");
      this.#seen.set(id, (this.#seen.get(id) ?? 0) + 1);
      response.end();
    });
  }

  static async open(): Promise<WorkOracle> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    return new WorkOracle(server);
  }

  /** Work that was accepted and whose effect has not arrived. */
  get missing(): string[] {
    return [...this.#expected].filter((id) => !this.#seen.has(id)).toSorted();
  }

  /** How much work of each kind was accepted. */
  get accepted(): Record<WorkKind, number> {
    const count = (kind: WorkKind) => [...this.#expected].filter((id) => id.startsWith(kind)).length;
    return Object.fromEntries(WORK_KINDS.map((kind) => [kind, count(kind)])) as Record<WorkKind, number>;
  }

  /** Gives a server work of a kind, at an instance of its own or a given one. True if it was accepted. */
  async start(
    server: { readonly url: string },
    kind: WorkKind,
    delayMs: number,
    secret?: string,
    instance?: string,
  ): Promise<boolean> {
    this.#started += 1;
    const id = `${kind}-${this.#started}`;
    const answer = await this.#send(server.url, kind, id, delayMs, secret, instance ?? id).catch(() => null);
    if (answer !== 200 && answer !== 202) return false;
    this.#expected.add(id);
    return true;
  }

  /** Lets the deliveries go on that were accepted. Later ones wait again. */
  release(): void {
    this.#held.resolve();
    this.#held = Promise.withResolvers<void>();
  }

  /** Deliveries that a server attempts again are not held any more. */
  releaseAll(): void {
    this.#held.resolve();
  }

  /** Waits until all effects have arrived, and touches nothing meanwhile. */
  async wait(): Promise<void> {
    this.releaseAll();
    await expect.poll(() => this.missing, { interval: 200 }).toEqual([]);
  }

  close(): void {
    this.#held.resolve();
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #send(
    url: string,
    kind: WorkKind,
    id: string,
    delayMs: number,
    secret: string | undefined,
    instance: string,
  ): Promise<number> {
    const post = async (path: string, body: unknown, headers: Record<string, string> = {}) => {
      const signal = awakeSignal(this.patienceMs);
      const init = {
        method: "POST",
        body: JSON.stringify(body),
        headers: { "content-type": "application/json", ...headers },
        signal,
      };
      const response = await fetch(url + path, init);
      await response.text();
      return response.status;
    };
    const call = (method: string, ...args: unknown[]) =>
      post(`/agents/tasker/${instance}/rpc/${method}`, args, { authorization: `Bearer ${ROOT_TOKEN}` });
    switch (kind) {
      case "queue":
        return call("enqueue", id);
      case "schedule":
        return call("later", id, delayMs);
      case "alarm":
        return post(`/bell/${id}`, { delayMs });
      case "workflow":
        return post(`/flow/${id}`, { delayMs });
      case "delivery":
        return (await sendGeneric(url, `tasks/${instance}`, { id, type: "t" }, {}, secret)).status;
    }
  }
}
