/**
 * What programs find in `globalThis` beside Node's own: `WebSocketPair`, `WebSocketRequestResponsePair`, a `Response` that accepts status 101, and
 * a `fetch` that waits for the output gate of the object that calls it.
 */
import { currentWork } from "./current-work.ts";
import { WebSocketPair, WebSocketRequestResponsePair } from "./web-socket.ts";

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
  const fetch = target.fetch;
  Object.assign(target, {
    WebSocketPair,
    WebSocketRequestResponsePair,
    Response: createResponseClass(target.Response),
    fetch: (input: string | URL | Request, init?: RequestInit) => {
      const work = currentWork();
      return work === undefined ? fetch(input, init) : work.passGate().then(() => fetch(input, init));
    },
  });
}

/** True for a response whose body is a stream that a program produces: its object must stay in memory until the stream has ended. */
export function isStreaming(response: Response): boolean {
  return STREAMING.has(response);
}

/** Node's `Response` refuses status 101. The prototype is the same, so `instanceof` holds for the responses of either class. */
function createResponseClass(base: typeof Response): typeof Response {
  return new Proxy(base, {
    construct(target, args: [unknown, WorkerResponseInit | undefined], newTarget) {
      const [body, init] = args;
      const webSocket = init?.webSocket ?? null;
      const isUpgrade = webSocket !== null || init?.status === 101;
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
          Object.defineProperty(response, name, { value });
      }
      Object.defineProperty(response, "webSocket", { value: webSocket });
      if (body instanceof ReadableStream) STREAMING.add(response);
      return response;
    },
  });
}
