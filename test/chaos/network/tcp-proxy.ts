/**
 * A TCP proxy whose network fails on demand. It passes bytes between clients and one target, and can delay, hold, cut or reset them.
 *
 * Invariants:
 * 1. Bytes are never lost, doubled or reordered within a connection: like packets of TCP, held bytes arrive after the network heals, unless the
 *    connection was reset meanwhile.
 * 2. While a direction is held, the proxy reads no bytes of it, so a sender sees back-pressure and no error.
 * 3. While the proxy is cut, existing connections are reset, and new ones are reset at once.
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** `up` is from the client to the target. */
export type Direction = "up" | "down";

interface Pair {
  readonly client: Socket;
  readonly target: Socket;
}

export class TcpProxy {
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  readonly #held = new Set<Direction>();
  #targetPort: number;
  #delayMs = 0;
  #isCut = false;

  private constructor(targetPort: number) {
    this.#targetPort = targetPort;
    // Half-open connections stay half open, as without a proxy.
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#accept(client));
  }

  static async open(targetPort: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(targetPort);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get connections(): number {
    return this.#pairs.size;
  }

  /** For new connections. */
  set targetPort(port: number) {
    this.#targetPort = port;
  }

  /** Bytes of both directions arrive this much later. */
  delay(delayMs: number): void {
    this.#delayMs = delayMs;
  }

  /** Nothing arrives any more in these directions, and no error is reported: a black hole. */
  hold(...directions: readonly Direction[]): void {
    for (const direction of directions) this.#held.add(direction);
    this.#update();
  }

  /** Resets all connections, and refuses new ones. */
  cut(): void {
    this.#isCut = true;
    this.reset();
  }

  reset(): void {
    for (const { client, target } of this.#pairs) {
      client.resetAndDestroy();
      target.resetAndDestroy();
    }
  }

  heal(): void {
    this.#isCut = false;
    this.#delayMs = 0;
    this.#held.clear();
    this.#update();
  }

  async close(): Promise<void> {
    this.#isCut = true;
    for (const { client, target } of this.#pairs) {
      client.destroy();
      target.destroy();
    }
    this.#server.close();
    await once(this.#server, "close");
  }

  #accept(client: Socket): void {
    client.on("error", () => undefined);
    if (this.#isCut) {
      client.resetAndDestroy();
      return;
    }
    const target = connect({ port: this.#targetPort, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
    const pair: Pair = { client, target };
    this.#pairs.add(pair);
    // A failure of one side is a reset of the other, as without a proxy.
    target.on("error", () => client.resetAndDestroy());
    client.on("error", () => target.resetAndDestroy());
    client.on("close", () => this.#close(pair));
    target.on("close", () => this.#close(pair));
    this.#pass(client, target, "up");
    this.#pass(target, client, "down");
    this.#update();
  }

  #close(pair: Pair): void {
    this.#pairs.delete(pair);
    // With a delay, bytes of the side that closed first may still be on their way.
    setTimeout(() => {
      pair.client.destroySoon();
      pair.target.destroySoon();
    }, this.#delayMs);
  }

  #pass(from: Socket, to: Socket, direction: Direction): void {
    /** Actions in the order of their bytes, each with its time; a shorter delay does not let later bytes overtake earlier ones. */
    const queue: { readonly at: number; readonly action: () => void }[] = [];
    const run = () => {
      while (queue[0] !== undefined && queue[0].at <= performance.now()) queue.shift()?.action();
      if (queue[0] !== undefined) setTimeout(run, Math.max(0, queue[0].at - performance.now()));
    };
    const later = (action: () => void) => {
      if (queue.length === 0 && this.#delayMs === 0) {
        action();
        return;
      }
      queue.push({ at: performance.now() + this.#delayMs, action });
      if (queue.length === 1) setTimeout(run, this.#delayMs);
    };
    from.on("data", (chunk: Buffer) =>
      later(() => {
        if (to.destroyed || to.write(chunk)) return;
        from.pause();
        to.once("drain", () => {
          if (!this.#held.has(direction)) from.resume();
        });
      }),
    );
    from.on("end", () => later(() => to.end()));
  }

  #update(): void {
    for (const { client, target } of this.#pairs) {
      if (this.#held.has("up")) client.pause();
      else client.resume();
      if (this.#held.has("down")) target.pause();
      else target.resume();
    }
  }
}
