/**
 * An object in memory: the resident of an instance. Its events are turns that interleave at awaits; a handler that throws keeps what it wrote.
 *
 * Invariants:
 * 1. The constructor runs before any event, as the first turn.
 * 2. The object stays in memory while an event runs, a promise passed to `waitUntil` is pending, `blockConcurrencyWhile` runs, a WebSocket that it
 *    accepted without hibernation is open, or a body that it produces is being read.
 */
import type { InstanceDatabase } from "../../engines/instance-store/index.ts";
import { type InstanceReader, readerOf } from "../instance/inspection.ts";
import { type InstanceRef, keyOf } from "../instance/instance-ref.ts";
import type { Resident, ResidentParts } from "../instance/resident.ts";
import { ChangeCounters } from "./change-counters.ts";
import { rawSql, sql } from "../../core/sql.ts";
import { nameWork, type ObjectWork } from "./current-work.ts";
import { OBJECT } from "./class-marks.ts";
import { type AlarmInfo, ObjectAlarm } from "./object-alarm.ts";
import { ObjectContext } from "./object-context.ts";
import { type FacetHost, ObjectFacets } from "./object-facets.ts";
import type { ObjectSockets } from "./object-sockets.ts";
import { ObjectPast, type ObjectPasts } from "./object-past.ts";
import { ObjectStorage } from "./object-storage.ts";
import type { ObjectClass, ObjectId } from "./object-types.ts";
import { targetOf } from "./rpc-stub.ts";
import { endingWith, reach, transferResult } from "./rpc-values.ts";
import {
  cutAccepted,
  endOf,
  type FrameOutcome,
  type SocketEnd,
  type SocketFrame,
  WorkerWebSocket,
} from "./web-socket.ts";
import type { WorkerBinding } from "./worker-binding.ts";
import { isStreaming } from "./worker-globals.ts";

/** Frees the page cache, except for changed pages. */
const SHRINK = rawSql("PRAGMA shrink_memory");

/** Methods of the user's class that the runtime calls. */
interface Handlers {
  fetch?(request: Request): unknown;
  alarm?(info: AlarmInfo): unknown;
  webSocketMessage?(webSocket: WorkerWebSocket, message: string | ArrayBuffer): unknown;
  webSocketClose?(webSocket: WorkerWebSocket, code: number, reason: string, wasClean: boolean): unknown;
  webSocketError?(webSocket: WorkerWebSocket, error: unknown): unknown;
}

/** How the object of an instance is constructed. */
export interface ObjectSpec {
  readonly objectClass: ObjectClass;
  /** Given the stored name, undefined if there is none. */
  readonly id: (storedName: string | undefined) => ObjectId;
  /** The name that the caller used; undefined if it used none. */
  readonly name: string | undefined;
  readonly props: unknown;
  readonly binding: WorkerBinding;
  readonly isFacet: boolean;
}

export interface LiveObjectHost {
  readonly facets: FacetHost;
  readonly sockets: ObjectSockets;
  readonly pasts: ObjectPasts;
  /** Delivers a frame to the object, which is loaded if it is not in memory. */
  receive(ref: InstanceRef, end: SocketEnd, frame: SocketFrame): Promise<FrameOutcome> | undefined;
}

export class LiveObject implements Resident {
  readonly database: InstanceDatabase;
  readonly errorHook = null;
  #storage: ObjectStorage | null = null;
  readonly alarm: ObjectAlarm;
  readonly #counters: ChangeCounters;
  readonly #past: ObjectPast;
  readonly #parts: ResidentParts<LiveObject>;
  readonly #host: LiveObjectHost;
  readonly #key: string;
  readonly #spec: () => ObjectSpec | Promise<ObjectSpec>;
  readonly #views = new WeakMap<SocketEnd, WorkerWebSocket>();
  #facets: ObjectFacets | null = null;
  #object: Handlers | null = null;
  #hasShrunk = false;
  #isFacet = false;
  /** Its alarm is known, and rings if it is due. */
  #isReady = false;

  constructor(
    parts: ResidentParts<LiveObject>,
    host: LiveObjectHost,
    spec: () => ObjectSpec | Promise<ObjectSpec>,
  ) {
    this.#parts = parts;
    this.#host = host;
    this.#key = keyOf(parts.ref);
    this.#spec = spec;
    this.database = parts.database;
    this.#counters = new ChangeCounters(parts.database);
    const { outputs, transactions } = parts.runtime;
    const { database, holder, ref } = parts;
    this.#past = new ObjectPast(host.pasts, {
      ref,
      database,
      transactions,
      outputs,
      hold: () => holder.hold(),
    });
    this.alarm = new ObjectAlarm({
      database: parts.database,
      transactions,
      counters: this.#counters,
      clock: parts.environment.clock,
      onDue: parts.onDue,
      run: (body) => parts.runtime.run({ kind: "alarm", label: "alarm", isInternal: true, body }),
      passGate: () => parts.holder.passGate(),
      ring: (info) => this.#handlers.alarm?.(info),
      isStorageDown: () => parts.environment.store.problem !== null,
      onGiveUp: (error) => parts.reports.logError(error, "alarm() failed and is not tried again"),
    });
  }

  get reader(): InstanceReader {
    return readerOf(this.database, this.#parts.environment.clock);
  }

  /** The side of calls that the object's values belong to. */
  get work(): ObjectWork {
    return this.#parts.holder;
  }

  async start(): Promise<void> {
    const spec = await this.#spec();
    const { objectClass } = spec;
    const context = this.#createContext(spec);
    nameWork(this.work, this.#parts.ref.agent, context.id);
    try {
      this.#object = new objectClass(context as never, spec.binding.env as never);
    } catch (error) {
      // Its callers see that there is no object, not that their call failed.
      throw error instanceof Error ? Object.assign(error, { durableObjectReset: true }) : error;
    }
  }

  get isIdle(): boolean {
    return this.#isReady;
  }

  ready(): void {
    this.#isReady = true;
    this.alarm.start(this.database.isNew, this.#parts.isResumed);
  }

  clockChanged(): void {
    this.alarm.clockChanged();
  }

  /** Frees the pages that only the start of the program needed: a program that creates its tables has read and written all of them. */
  idle(): void {
    if (this.#hasShrunk) return;
    this.#hasShrunk = true;
    this.database.run(SHRINK);
  }

  /** Clients reach a facet through the objects above it: its name begins with theirs. */
  get hasClients(): boolean {
    const { ref } = this.#parts;
    for (let { name } = ref; ; name = name.slice(0, name.lastIndexOf("."))) {
      if ((this.#host.sockets.find(keyOf({ ...ref, name }))?.ends.size ?? 0) > 0) return true;
      if (!name.includes(".")) return false;
    }
  }

  /** True after `deleteAll`, unless something was stored since, or a client is connected. */
  get isDisposable(): boolean {
    return (
      !this.#isFacet &&
      this.#storage?.isEmptied === true &&
      (this.#host.sockets.find(this.#key)?.ends.size ?? 0) === 0
    );
  }

  /** After a failure of the storage clients connect again, as to an object that was reset: nobody else tells them what they have missed. */
  stop(hasFailed = false): void {
    this.alarm.stop();
    this.#past.stop();
    cutAccepted(this.work);
    if (hasFailed) this.#host.sockets.find(this.#key)?.terminate();
    this.#host.sockets.releaseIfEmpty(this.#key);
  }

  async fetch(request: Request): Promise<Response> {
    const handlers = this.#handlers;
    if (typeof handlers.fetch !== "function") throw new Error("Handler does not export a fetch() function.");
    const response = await handlers.fetch(request);
    if (!(response instanceof Response))
      throw new TypeError("Incorrect type for Promise: the Promise did not resolve to 'Response'.");
    return isStreaming(response) ? this.#held(response) : response;
  }

  /** Calls a method or reads a property; the result is a copy for the caller. */
  async invoke(path: readonly string[], args: readonly unknown[] | null): Promise<unknown> {
    // The object of a loaded class is a stub of the one in its process.
    if (!(OBJECT in this.#handlers) && targetOf(this.#handlers) === undefined)
      throw new TypeError(
        "The object does not support RPC, because its class does not extend DurableObject of cloudflare:workers: only fetch() can be called.",
      );
    return endingWith(args, async () => transferResult(await reach(this.#handlers, path, args), this.work));
  }

  /** Handles a frame of a hibernating WebSocket. */
  async receive(end: SocketEnd, frame: SocketFrame): Promise<void> {
    const view = this.#viewOf(end);
    if (frame.kind === "message") await this.#handlers.webSocketMessage?.(view, frame.data);
    else await this.#handlers.webSocketClose?.(view, frame.code, frame.reason, frame.wasClean);
  }

  /** Ends the object at once, with its facets and WebSockets. */
  reset(reason: Error): void {
    Object.assign(reason, { durableObjectReset: true });
    this.#facets?.abortAll(reason);
    this.#parts.abort(reason);
    this.#host.sockets.find(this.#key)?.terminate();
  }

  get #handlers(): Handlers {
    if (this.#object === null) throw new Error("the object does not exist yet");
    return this.#object;
  }

  #createContext(spec: ObjectSpec): ObjectContext {
    const { runtime, holder, ref } = this.#parts;
    const { transactions, outputs } = runtime;
    const base = { database: this.database, transactions, counters: this.#counters };
    const storage = new ObjectStorage({
      ...base,
      outputs,
      alarm: this.alarm,
      past: this.#past,
      // The handler may be a property of the object, as `Lifecycle` installs it. Before the object exists, the answer is open.
      hasAlarmHandler: () => this.#object === null || typeof this.#object.alarm === "function",
      isFacet: spec.isFacet,
      block: () => runtime.block(),
      reset: (reason) => this.reset(reason),
    });
    this.#storage = storage;
    const id = spec.id(this.#rememberName(spec.name));
    const facets = new ObjectFacets(this.#host.facets, ref.name, id, base);
    this.#facets = facets;
    this.#isFacet = spec.isFacet;
    return new ObjectContext({
      id,
      props: spec.props ?? {},
      exports: spec.binding.exports,
      storage,
      facets,
      holder,
      runtime,
      sockets: () => this.#host.sockets.get(this.#key),
      acceptSocket: (webSocket, tags) => this.#accept(webSocket, tags),
      viewOf: (end) => this.#viewOf(end),
      reset: (reason) => this.reset(reason),
    });
  }

  /** Stores the name of the object when it is first known: an alarm has no caller who knows it. */
  #rememberName(name: string | undefined): string | undefined {
    const row = this.database.get<{ name: string | null }>(
      sql`SELECT name FROM _signalbox_object WHERE id = 1`,
    );
    if (row?.name !== undefined && row.name !== null) return JSON.parse(row.name) as string;
    if (name === undefined) return undefined;
    this.#parts.runtime.transactions.open();
    this.database.run(sql`UPDATE _signalbox_object SET name = ${JSON.stringify(name)} WHERE id = 1`);
    return name;
  }

  #accept(webSocket: WorkerWebSocket, tags: readonly string[]): void {
    const end = endOf(webSocket);
    if (end.isConnected)
      throw new Error("Cannot call `acceptWebSocket()` if the WebSocket was already accepted via `accept()`");
    this.#host.sockets.add(this.#key, end, tags);
    webSocket.belongsTo(this.work);
    this.#views.set(end, webSocket);
    // Only its parent can construct a facet: it stays in memory for its WebSockets.
    const release = this.#isFacet ? this.#parts.holder.hold() : null;
    end.connect((frame) => {
      const handled = this.#host.receive(this.#parts.ref, end, frame);
      if (frame.kind === "close") release?.();
      return handled;
    });
  }

  #viewOf(end: SocketEnd): WorkerWebSocket {
    let view = this.#views.get(end);
    if (view === undefined) {
      view = new WorkerWebSocket(end, this.work);
      this.#views.set(end, view);
    }
    return view;
  }

  /** The response with a body that keeps the object in memory until it has been read, and whose chunks leave when what was written before them is durable. */
  #held(response: Response): Response {
    const { body } = response;
    if (body === null) return response;
    const { holder } = this.#parts;
    // First: it throws if the program reads the body itself.
    const reader = body.getReader();
    const release = holder.hold();
    const held = new ReadableStream({
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          await holder.passGate();
          if (!done) controller.enqueue(value);
          else {
            release();
            controller.close();
          }
        } catch (error) {
          release();
          throw error;
        }
      },
      cancel(reason) {
        release();
        return reader.cancel(reason);
      },
    });
    return new Response(held, response);
  }
}
