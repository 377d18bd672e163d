/** An object for random calls and events: its log shows in which order they ran. */
import { DurableObject, RpcTarget } from "cloudflare:workers";
import { outcome } from "../../differential/src/show";
import { VALUES } from "./values";

class Counter extends RpcTarget {
  #value: number;
  disposed = 0;

  constructor(value: number) {
    super();
    this.#value = value;
  }

  get value() {
    return this.#value;
  }

  add(step: number) {
    this.#value += step;
    return this.#value;
  }

  child(step: number) {
    return new Counter(this.#value + step);
  }

  [Symbol.dispose]() {
    this.disposed += 1;
  }
}

class OwnError extends Error {
  override name = "OwnError";
}

const ERRORS: readonly (() => unknown)[] = [
  () => new Error("plain"),
  () => new TypeError("of a built-in class"),
  () => Object.assign(new RangeError("with properties"), { code: "E_CODE", details: { tries: [1, 2] } }),
  () => new OwnError("of a class of the program"),
  () => new DOMException("gone", "AbortError"),
  () => "a text",
];

export class Peer extends DurableObject {
  #log: string[] = [];
  #kept: { add?(step: number): Promise<number>; (value: number): Promise<number>; dup() } | null = null;

  echo(value: unknown) {
    return value;
  }

  fail(kind: number) {
    throw ERRORS[kind]?.();
  }

  counter(value: number) {
    return new Counter(value);
  }

  async callBack(callback: (value: number) => Promise<number>, times: number) {
    const results: number[] = [];
    for (let i = 0; i < times; i += 1) results.push(await callback(i));
    return results;
  }

  async keep(callback, isDuplicated: boolean) {
    this.#kept = isDuplicated ? callback.dup() : callback;
    return callback(1);
  }

  async useKept() {
    return this.#kept === null ? "nothing" : this.#kept(2);
  }

  kindOf(value: unknown) {
    return typeof value;
  }

  async add(target, step: number) {
    return [await target.value, await target.add(step), await target.child(step).add(step)];
  }

  async plain(name: string) {
    this.#log.push(name);
  }

  async microtasks(name: string, count: number) {
    this.#log.push(`${name} starts`);
    for (let i = 0; i < count; i += 1) await Promise.resolve();
    this.#log.push(`${name} ends`);
  }

  async stored(name: string) {
    this.#log.push(`${name} starts`);
    const count = ((await this.ctx.storage.get<number>("count")) ?? 0) + 1;
    await this.ctx.storage.put("count", count);
    this.#log.push(`${name} ends with ${count}`);
  }

  async blocked(name: string) {
    this.#log.push(`${name} starts`);
    await this.ctx.blockConcurrencyWhile(async () => {
      await this.ctx.storage.get("count");
      this.#log.push(`${name} blocks`);
    });
    this.#log.push(`${name} ends`);
  }

  take() {
    return this.#log.splice(0);
  }

  async fetch() {
    const { 0: client, 1: server } = new WebSocketPair();
    this.ctx.acceptWebSocket(server);
    return new Response(null, { status: 101, webSocket: client });
  }

  async webSocketMessage(socket, message: string) {
    this.#log.push(`${message} starts`);
    await Promise.resolve();
    this.#log.push(`${message} ends`);
    socket.send(`answer to ${message}`);
  }
}

/** One operation of the client against an object. */
export async function apply(peer, [name, ...args]: readonly [string, ...unknown[]]) {
  switch (name) {
    case "echo":
      return outcome(() => peer.echo(VALUES[args[0] as number]?.()));
    case "fail":
      return outcome(async () => {
        try {
          return await peer.fail(args[0]);
        } catch (error) {
          return { error, code: error?.code, details: error?.details };
        }
      });
    case "call back": {
      const times = args[0] as number;
      return outcome(() => peer.callBack(async (value: number) => value * 2, times));
    }
    case "call back that fails":
      return outcome(() =>
        peer.callBack(async () => {
          throw ERRORS[args[0] as number]?.();
        }, 1),
      );
    case "keep":
      return outcome(() => peer.keep(async (value: number) => value * 10, args[0]));
    case "use kept":
      return outcome(() => peer.useKept());
    case "kind":
      return outcome(() => peer.kindOf(args[0] === "target" ? new Counter(1) : () => 1));
    case "target":
      return outcome(() => peer.add(new Counter(args[0] as number), args[1]));
    case "remote target":
      return outcome(async () => {
        using counter = await peer.counter(args[0]);
        return [await counter.value, await counter.add(args[1]), await counter.child(1).value];
      });
    case "pipelined":
      return outcome(() => peer.counter(args[0]).child(args[1]).add(1));
    case "missing":
      return outcome(() => peer[args[0] as string](1));
    case "burst": {
      const calls = args[0] as (readonly [string, ...unknown[]])[];
      await Promise.all(calls.map(([method, ...rest], i) => peer[method](`${method} ${i}`, ...rest)));
      return peer.take();
    }
    case "messages":
      return messages(peer, args[0] as number);
    default:
      throw new Error(`unknown operation ${name}`);
  }
}

/** Sends messages without a pause between them; reads the answers one after the other. */
async function messages(peer, count: number) {
  const { webSocket } = await peer.fetch("https://example.com/", { headers: { upgrade: "websocket" } });
  webSocket.accept();
  const next = () =>
    new Promise((resolve) =>
      webSocket.addEventListener("message", ({ data }) => resolve(data), { once: true }),
    );
  for (let i = 0; i < count; i += 1) webSocket.send(`message ${i}`);
  const answers: unknown[] = [];
  for (let i = 0; i < count; i += 1) answers.push(await next());
  webSocket.close(1000, "done");
  return [answers, await peer.take()];
}
