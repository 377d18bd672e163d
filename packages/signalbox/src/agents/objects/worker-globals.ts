/**
 * What programs find in `globalThis` beside Node's own: `WebSocketPair`, `WebSocketRequestResponsePair`, a `Response` that accepts status 101, a
 * `WebSocket` whose prototype is that of the ends of pairs, a `fetch` that waits for the output gate of the object that calls it, and timers that are
 * noted at the object.
 */
import { noteBody, notePendingTimers } from "../../engines/turn-runtime/index.ts";
import { currentWork } from "./current-work.ts";
import { WebSocketPair, WebSocketRequestResponsePair, WorkerWebSocket } from "./web-socket.ts";

const INSTALLED = Symbol.for("signalbox.worker-globals");
const STREAMING = new WeakSet<Response>();

interface WorkerResponseInit extends ResponseInit {
  readonly webSocket?: object | null;
}

/** Idempotent; also over several copies of this file. */
export function installWorkerGlobals(): void {
  const target = globalThis as typeof globalThis & { [INSTALLED]?: true };
  if (target[INSTALLED] === true) return;
  Object.defineProperty(target, INSTALLED, { value: true });
  notePendingTimers();
  const fetch = target.fetch;
  acceptTexts(target.Response);
  Object.assign(target, {
    WebSocketPair,
    WebSocketRequestResponsePair,
    Response: createResponseClass(target.Response),
    WebSocket: createWebSocketClass(target.WebSocket),
    fetch: (input: string | URL | Request, init?: RequestInit) => {
      const work = currentWork();
      if (work === undefined) return fetch(input, init);
      // The object waits for the answer, whether or not an event does.
      const release = work.hold();
      return work
        .passGate()
        .then(() => fetch(input, init))
        .then((response) => {
          if (response.body !== null) noteBody(work, response.body);
          return response;
        })
        .finally(release);
    },
  });
}

/** True for a response whose body is a stream that a program produces: its object must stay in memory until the stream has ended. */
export function isStreaming(response: Response): boolean {
  return STREAMING.has(response);
}

/**
 * A body that a program produces may consist of texts, which are UTF-8 on the network. Node's own readers of bodies want bytes: such a body is encoded when one of them is called.
 */
function acceptTexts(base: typeof Response): void {
  const prototype = base.prototype as unknown as Record<string, (this: Response) => unknown>;
  for (const name of ["arrayBuffer", "blob", "bytes", "formData", "json", "text"]) {
    const read = prototype[name];
    if (read === undefined) continue;
    prototype[name] = function readBody(this: Response) {
      const { body } = this;
      if (!STREAMING.has(this) || body === null || body.locked || this.bodyUsed)
        return Reflect.apply(read, this, []);
      const { headers } = this;
      return Reflect.apply(read, new base(body.pipeThrough(encodeTexts()), { headers }), []);
    };
  }
  const clone = prototype["clone"];
  prototype["clone"] = function cloneResponse(this: Response) {
    const copy = Reflect.apply(clone ?? (() => this), this, []) as Response;
    if (STREAMING.has(this)) STREAMING.add(copy);
    return copy;
  };
}

function encodeTexts(): TransformStream<unknown, Uint8Array> {
  const encoder = new TextEncoder();
  return new TransformStream({
    transform: (chunk, controller) =>
      controller.enqueue(typeof chunk === "string" ? encoder.encode(chunk) : (chunk as Uint8Array)),
  });
}

/** Node's `Response` refuses status 101. The prototype is the same, so `instanceof` holds for the responses of either class. */
function createResponseClass(base: typeof Response): typeof Response {
  return new Proxy(base, {
    construct(target, args: [unknown, WorkerResponseInit | undefined], newTarget) {
      const [body, init] = args;
      const webSocket = init?.webSocket ?? null;
      const isUpgrade = webSocket !== null;
      if (isUpgrade && init?.status !== 101)
        throw new RangeError("Responses with a WebSocket must have status code 101.");
      const response = Reflect.construct(
        target,
        isUpgrade ? [null, { headers: init?.headers }] : args,
        newTarget,
      ) as Response;
      if (isUpgrade) {
        for (const [name, value] of Object.entries({
          status: 101,
          ok: false,
          statusText: "Switching Protocols",
        }))
          Object.defineProperty(response, name, { value, configurable: true });
      }
      // Configurable as with a getter of the prototype: mocks of programs replace it.
      Object.defineProperty(response, "webSocket", { value: webSocket, configurable: true });
      if (body instanceof ReadableStream) STREAMING.add(response);
      return response;
    },
  });
}

/**
 * `WebSocket.prototype` has the methods of the ends of pairs, which programs call on them. `new WebSocket(url)` connects as Node's own class does,
 * and what it makes counts as an instance.
 */
function createWebSocketClass(base: typeof WebSocket): typeof WorkerWebSocket {
  return new Proxy(WorkerWebSocket, {
    construct: (_target, args: [string]) => new base(...args),
    get: (target, name) =>
      name === Symbol.hasInstance
        ? (value: unknown) => value instanceof base || value instanceof WorkerWebSocket
        : (Reflect.get(target, name) as unknown),
  });
}
