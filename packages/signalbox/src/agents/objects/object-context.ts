/** `ctx`: what an object can do with itself. */
import { afterMicrotasks, type TurnRuntime } from "../../engines/turn-runtime/index.ts";
import type { Holder } from "../instance/resident.ts";
import { limitBlock } from "./block-limit.ts";
import type { ObjectFacets } from "./object-facets.ts";
import type { ObjectSnapshot } from "./object-past.ts";
import type { ObjectStorage } from "./object-storage.ts";
import type { SocketSet } from "./object-sockets.ts";
import type { ObjectId } from "./object-types.ts";
import { endOf, type SocketEnd, WebSocketRequestResponsePair, type WorkerWebSocket } from "./web-socket.ts";

/** Of the message and of its automatic response; as in the originals. */
const MAX_AUTO_RESPONSE_BYTES = 2048;
/** The longest time that a program may set for its WebSocket handlers; as in the originals. */
const MAX_EVENT_TIMEOUT_MS = 7 * 24 * 3600 * 1000;

export interface ContextParts {
  readonly id: ObjectId;
  readonly props: unknown;
  /** Of the worker that has the class. */
  readonly exports: Readonly<Record<string, unknown>>;
  readonly storage: ObjectStorage;
  readonly facets: ObjectFacets;
  readonly holder: Holder;
  readonly runtime: Pick<TurnRuntime<never>, "block">;
  readonly sockets: () => SocketSet;
  /** Registers an end whose frames become events of the object. */
  readonly acceptSocket: (webSocket: WorkerWebSocket, tags: readonly string[]) => void;
  /** What this object in memory sees of an end. */
  readonly viewOf: (end: SocketEnd) => WorkerWebSocket;
  /** Ends the object at once. */
  readonly reset: (reason: Error) => void;
}

export class ObjectContext {
  readonly id: ObjectId;
  readonly storage: ObjectStorage;
  readonly props: unknown;
  readonly facets: ObjectFacets;
  readonly #parts: ContextParts;
  #eventTimeoutMs: number | null = null;

  constructor(parts: ContextParts) {
    this.id = parts.id;
    this.storage = parts.storage;
    this.props = parts.props;
    this.facets = parts.facets;
    this.#parts = parts;
  }

  get [Symbol.toStringTag](): string {
    return "DurableObjectState";
  }

  get exports(): Readonly<Record<string, unknown>> {
    return this.#parts.exports;
  }

  /** Keeps the object in memory until the promise has settled. */
  waitUntil(work: Promise<unknown>): void {
    this.#parts.holder.waitUntil(work);
  }

  /** Runs the function while no other event starts. If it fails, the object is reset: later events construct it again. */
  async blockConcurrencyWhile<T>(work: () => Promise<T> | T): Promise<T> {
    const { holder, reset, runtime } = this.#parts;
    const unblock = runtime.block();
    const release = holder.hold();
    const timeLimit = Promise.withResolvers<never>();
    const endLimit = limitBlock("blockConcurrencyWhile", timeLimit.reject);
    try {
      return await Promise.race([Promise.resolve().then(work), timeLimit.promise]);
    } catch (error) {
      reset(toError(error));
      throw error;
    } finally {
      endLimit();
      release();
      // The code that awaits the result goes on before other events start.
      afterMicrotasks(unblock);
    }
  }

  acceptWebSocket(webSocket: WorkerWebSocket, tags: readonly string[] = []): void {
    this.#parts.acceptSocket(webSocket, tags);
  }

  getWebSockets(tag?: string): WorkerWebSocket[] {
    return this.#parts
      .sockets()
      .list(tag)
      .map((end) => this.#parts.viewOf(end));
  }

  getTags(webSocket: WorkerWebSocket): string[] {
    return [...this.#hibernating(webSocket, "tags").tags];
  }

  setWebSocketAutoResponse(pair?: WebSocketRequestResponsePair): void {
    if (pair !== undefined) checkAutoResponse(pair);
    this.#parts.sockets().autoResponse =
      pair === undefined ? null : { request: pair.request, response: pair.response };
  }

  getWebSocketAutoResponse(): WebSocketRequestResponsePair | null {
    const pair = this.#parts.sockets().autoResponse;
    return pair === null ? null : new WebSocketRequestResponsePair(pair.request, pair.response);
  }

  getWebSocketAutoResponseTimestamp(webSocket: WorkerWebSocket): Date | null {
    return this.#hibernating(webSocket, "automatic responses").autoResponseAt;
  }

  /** Kept for programs that read it back: events here have no time limit. */
  setHibernatableWebSocketEventTimeout(timeoutMs?: number): void {
    if (timeoutMs !== undefined && (!(timeoutMs >= 0) || timeoutMs > MAX_EVENT_TIMEOUT_MS))
      throw new Error("Event timeout should not exceed 604800000 ms, and must not be negative.");
    this.#eventTimeoutMs = timeoutMs === undefined || timeoutMs === 0 ? null : timeoutMs;
  }

  getHibernatableWebSocketEventTimeout(): number | null {
    return this.#eventTimeoutMs;
  }

  /** Ends the object at once: running events fail with the reason, WebSockets are cut, and the next event constructs the object again. */
  abort(reason?: unknown): never {
    const error = new Error(
      reason === undefined ? "Application called abort() to reset Durable Object." : textOf(reason),
    );
    this.#parts.reset(error);
    throw error;
  }

  /** As that of the storage. */
  onNextSessionRestore(snapshot: ObjectSnapshot): Promise<string> {
    return this.storage.onNextSessionRestore(snapshot);
  }

  #hibernating(webSocket: WorkerWebSocket, what: string): SocketEnd {
    const end = endOf(webSocket);
    if (!this.#parts.sockets().ends.has(end))
      throw new Error(`only hibernatable websockets can have ${what}.`);
    return end;
  }
}

function checkAutoResponse({ request, response }: WebSocketRequestResponsePair): void {
  for (const [name, text] of Object.entries({ Request: request, Response: response })) {
    const size = Buffer.byteLength(text);
    if (size > MAX_AUTO_RESPONSE_BYTES)
      throw new RangeError(
        `${name} cannot be larger than ${MAX_AUTO_RESPONSE_BYTES} bytes. A ${name.toLowerCase()} of size ${size} was provided.`,
      );
  }
}

/** The text of a reason: that of an error of another class has the name of the class. */
function textOf(reason: unknown): string {
  return reason instanceof Error && reason.name === "Error" ? reason.message : String(reason);
}

function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
