/**
 * A WebSocket client that watches the state of one entity at one node, and opens a new socket when its own was closed.
 *
 * Rules:
 * 1. The states of a socket only grow, and what they say is in the chain (`ChainModel`).
 * 2. A socket is closed only with the node at which it is: by a kill (no code), or with 1012 when the node stops. It stays open when the
 *    instance moves from one node to another. During a fault it may be closed with 1013, if its instance cannot be reached.
 * 3. At the end each open socket has the last state. Before, none stays behind for a minute.
 * 4. A handshake may be refused with 503 during a fault.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import type { LoadTarget } from "../../cluster/load-target.ts";
import { anyNode, type LoadContext, mayBeUnavailable } from "../workload.ts";
import type { ChainAnswer } from "./chain-agent.ts";
import type { ChainModel } from "./chain-model.ts";
import { AUTHORIZATION } from "./method-caller.ts";

const RETRY_MS = 200;
const SERVICE_RESTART = 1012;
const OVERLOADED = 1013;
/** Longer than a pause of a node, and the take-over of an instance after it, on a busy machine. */
const MAX_BEHIND_MS = 60_000;
/** Longer than a socket waits for an instance that cannot be reached. */
const RECENT_MS = 15_000;

type Frame =
  | { readonly type: "cf_agent_state"; readonly state: ChainAnswer | null }
  | { readonly type?: undefined; readonly connected?: string };

export class Watcher {
  readonly #context: LoadContext;
  readonly #model: ChainModel;
  readonly #name: string;
  #sockets = 0;
  #socket: WebSocket | null = null;
  #node: LoadTarget | null = null;
  #seq = 0;
  #openedAt = 0;
  #receivedAt = 0;
  /** Since when the clients have known of a later state, without a new one here. */
  #behindSince: number | null = null;
  #isGivenUp = false;

  constructor(context: LoadContext, model: ChainModel, name: string) {
    this.#context = context;
    this.#model = model;
    this.#name = name;
  }

  get model(): ChainModel {
    return this.#model;
  }

  /** The last state of the open socket; null if it is closed. */
  get seq(): number | null {
    return this.#socket?.readyState === WebSocket.OPEN ? this.#seq : null;
  }

  toString(): string {
    const seconds = (since: number) => ((performance.now() - since) / 1000).toFixed(1);
    return (
      `${this.#name}-${this.#sockets} at ${this.#node?.name} of ${this.#model.name}, ` +
      `opened ${seconds(this.#openedAt)} s ago, last state ${seconds(this.#receivedAt)} s ago`
    );
  }

  /** Runs until the signal aborts, and leaves its socket open. */
  async run(): Promise<void> {
    const { signal } = this.#context;
    const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    while (!signal.aborted) {
      await Promise.race([this.#open(), aborted]);
      if (!signal.aborted) await sleep(RETRY_MS);
    }
  }

  /** Called again and again: an open socket that receives no states is reported, and opened again. */
  checkProgress(): void {
    if (this.seq === null || this.#model.known.seq <= this.seq) return;
    this.#behindSince ??= performance.now();
    if (performance.now() - this.#behindSince < MAX_BEHIND_MS) return;
    this.#context.history.violation(
      `a socket stays behind: ${this.seq}, ${this.#model.known.seq} is known (${String(this)})`,
    );
    this.#isGivenUp = true;
    this.#socket?.terminate();
  }

  close(): void {
    this.#socket?.terminate();
  }

  /** Resolves when the socket is closed. */
  #open(): Promise<void> {
    const node = anyNode(this.#context);
    const { url } = node;
    if (url === null) return Promise.resolve();
    const { history } = this.#context;
    const nonce = `${this.#name}-${++this.#sockets}`;
    const before = this.#model.known;
    const startedAt = performance.now();
    const socket = new WebSocket(
      `${url.replace(/^http/, "ws")}/agents/chain/${this.#model.name}?nonce=${nonce}`,
      {
        headers: AUTHORIZATION,
      },
    );
    this.#socket = socket;
    this.#node = node;
    this.#seq = 0;
    this.#openedAt = startedAt;
    this.#receivedAt = startedAt;
    this.#behindSince = null;
    this.#isGivenUp = false;
    let isFirst = true;
    let refusal = 0;
    socket.on("error", () => undefined);
    socket.on("unexpected-response", (_, response) => {
      refusal = response.statusCode ?? 0;
      socket.terminate();
    });
    socket.on("message", (data: Buffer) => {
      const frame = JSON.parse(data.toString()) as Frame;
      if (frame.type === undefined) {
        if (frame.connected === nonce) this.#model.connected(nonce);
      } else if (frame.type === "cf_agent_state" && frame.state !== null) {
        this.#saw(frame.state, isFirst ? before.seq : 0, nonce);
        isFirst = false;
      }
    });
    return new Promise<void>((resolve) => {
      socket.once("close", (code) => {
        if (this.#isGivenUp) history.count("sockets given up");
        else if (refusal === 0) {
          this.#checkClose(node, code, startedAt);
          history.count(`sockets closed with ${code}`);
        } else this.#checkRefusal(refusal, startedAt);
        resolve();
      });
    });
  }

  #saw(state: ChainAnswer, atLeast: number, nonce: string): void {
    const { history } = this.#context;
    history.count("states received");
    this.#receivedAt = performance.now();
    this.#behindSince = null;
    const where = `${nonce} at ${this.#node?.name} of ${this.#model.name}`;
    if (state.seq < this.#seq)
      history.violation(`a socket went back: from ${this.#seq} to ${state.seq} (${where})`);
    if (state.seq < atLeast)
      history.violation(`a stale socket: the first state is ${state.seq}, ${atLeast} was known (${where})`);
    this.#seq = Math.max(this.#seq, state.seq);
    this.#model.saw(state);
  }

  #checkRefusal(status: number, startedAt: number): void {
    const { history } = this.#context;
    if (status === 503 && mayBeUnavailable(this.#context, { startedAt, endedAt: performance.now() }))
      history.count("sockets refused with 503");
    else history.violation(`a socket was refused with ${status}: ${String(this)}`);
  }

  #checkClose(node: LoadTarget, code: number, startedAt: number): void {
    const { signal, history } = this.#context;
    if (signal.aborted || node.mayHaveBrokenSince(startedAt)) return;
    if (code === SERVICE_RESTART && node.url === null) return;
    // A node that was cut off from PostgreSQL for long closes its sockets, which reconnect elsewhere.
    const now = performance.now();
    if (code === SERVICE_RESTART && node.isolation.longestWithin(now - RECENT_MS, now) > 0) {
      history.count("sockets closed by an isolated node");
      return;
    }
    // The node of the socket and that of the instance are cut off from each other.
    if (
      code === OVERLOADED &&
      mayBeUnavailable(this.#context, { startedAt: now - RECENT_MS, endedAt: now })
    ) {
      history.count("sockets closed because the instance could not be reached");
      return;
    }
    history.violation(`a socket was closed with ${code}: ${String(this)}`);
  }
}
