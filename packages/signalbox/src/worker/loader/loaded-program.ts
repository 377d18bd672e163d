/**
 * One loaded program: its process, and the session with it.
 *
 *   running ─ the process ends by itself, or is ended (idle, a limit, the server stops) → over
 *
 * Invariants:
 * 1. When the program is over, every call has failed with the reason, and no later call begins.
 * 2. While calls run, the event loop of the program is asked for a sign of life. If it uses more processor time than its limit before it gives one, or gives none for a
 *    time, it is ended.
 * 3. A call ends: with its result, with the program, when its caller gives it up, or after `MAX_CALL_MS`. Work that calls have left behind counts for `WAITING_MS` after the
 *    last one. So no program keeps its process for ever.
 */
import { deserialize, serialize } from "node:v8";
import {
  openProcessSession,
  type ProcessSession,
  readFlags,
  targetOf,
  transferArguments,
  workersModule,
} from "../../agents/calls.ts";
import { type ProcessEnd, ProgramProcess } from "../../engines/program-process/index.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { FacetStorage, StorageQuestion } from "./facet-storage.ts";
import type { LoadedHost, LoadedStart } from "./inside/loaded-main.ts";
import type { ProgramCode } from "./program-code.ts";

export interface ProgramSettings {
  readonly memoryMb: number;
  readonly cpuMs: number;
}

/** Between questions for a sign of life. */
const WATCH_MS = 250;
/** Without a sign of life, also if no processor time is used. */
const SILENT_MS = 30_000;
/** As in the originals: what `waitUntil` may take after a call. */
const WAITING_MS = 30_000;
const MAX_CALL_MS = 15 * 60_000;
/** Processor time of the whole life of a process; a program that is used on gets another one. */
const LIFE_SECONDS = 1200;
/** Requests of one program that wait for their responses. */
const MAX_OPEN_REQUESTS = 1000;
const OUT_OF_MEMORY = /out of memory|allocation failed/i;
const NO_NETWORK =
  "This program has no access to the network: it was loaded with globalOutbound null. It can use the bindings in its env.";

interface Silence {
  readonly since: number;
  readonly tick: number;
  /** Null where the system does not tell. */
  readonly processorMs: number | null;
}

/** A call that runs. */
interface Call {
  readonly tick: number;
  readonly reject: (reason: unknown) => void;
}

/** An object of the program, as the server has it. */
export interface LoadedFacet {
  readonly storage: FacetStorage;
  /** Ends the facet at once. */
  readonly abort: (reason: string) => void;
}

export class LoadedProgram {
  /** Objects of the program's classes, by their numbers. */
  readonly facets = new Map<number, LoadedFacet>();
  /** Resolves when the process has ended. */
  readonly whenOver: Promise<void>;
  readonly #process: ProgramProcess;
  readonly #session: ProcessSession;
  readonly #cpuMs: number;
  readonly #calls = new Set<Call>();
  readonly #host: Host;
  #failure: Error | null = null;
  #isWaiting = false;
  #calledAt = 0;
  /** Of the watch. Times that end something are counted in them: a pause of this process is none of the program. */
  #ticks = 0;
  #watch: NodeJS.Timeout | undefined;
  #silence: Silence | null = null;

  constructor(source: string, code: ProgramCode, settings: ProgramSettings, name: string, logger: Logger) {
    this.#cpuMs = Math.min(code.limits.cpuMs ?? settings.cpuMs, settings.cpuMs);
    this.#process = new ProgramProcess(source, {
      memoryMb: settings.memoryMb,
      processorSeconds: LIFE_SECONDS,
    });
    this.whenOver = this.#process.whenOver.then((end) => this.#fail(reasonOf(end)));
    this.#process.answer((question) => this.#answer(question));
    this.#host = new Host(code, name, logger, {
      waiting: (isWaiting) => {
        this.#isWaiting = isWaiting;
      },
      abort: (facet, reason) => this.facets.get(facet)?.abort(reason),
    });
    const start: LoadedStart = {
      mainModule: code.mainModule,
      modules: code.modules,
      env: code.env as LoadedStart["env"],
      flags: readFlags(code.date, code.flags),
      host: this.#host,
      hasTails: code.tails.length > 0,
      subRequests: code.limits.subRequests ?? null,
    };
    try {
      const [first] = transferArguments([start], null);
      this.#session = openProcessSession(this.#process.socket, first, () => this.#process.end());
    } catch (error) {
      this.#process.end();
      throw error;
    }
    // Every call awaits it.
    this.#session.root.catch(() => undefined);
  }

  get isOver(): boolean {
    return this.#failure !== null;
  }

  /** No call runs, and no work that a call has left behind. */
  get isIdle(): boolean {
    return this.#calls.size === 0 && !(this.#isWaiting && Date.now() - this.#calledAt < WAITING_MS);
  }

  /** Nothing of the program is in use: no stub, no body that is still read. */
  get isQuiet(): boolean {
    return this.#session.isQuiet;
  }

  /** Grows whenever something of the program is used. */
  get uses(): number {
    return this.#session.uses;
  }

  /** Calls the program. `args` were transferred. */
  run(
    name: string | null,
    props: unknown,
    path: readonly string[],
    args: readonly unknown[] | null,
  ): Promise<unknown> {
    return this.#call(signalOf(args), "run", name, props, path, args);
  }

  /** Constructs an object of one of the program's classes. */
  async construct(facet: number, name: string | null, id: object, props: unknown): Promise<void> {
    await this.#call(null, "construct", facet, name, id, props);
  }

  /** Calls an object. */
  invoke(facet: number, path: readonly string[], args: readonly unknown[] | null): Promise<unknown> {
    return this.#call(signalOf(args), "invoke", facet, path, args);
  }

  async forget(facet: number): Promise<void> {
    this.facets.delete(facet);
    if (!this.isOver) await this.#call(null, "forget", facet);
  }

  /** `signal`: of the caller. */
  async #call(signal: AbortSignal | null, method: string, ...args: readonly unknown[]): Promise<unknown> {
    if (this.#failure !== null) throw this.#failure;
    signal?.throwIfAborted();
    this.#host[ALLOW]();
    // Of this call alone: a promise of the program would keep every result until the program is over.
    const { promise, reject } = Promise.withResolvers<never>();
    const call: Call = { tick: this.#ticks, reject };
    const giveUp = () => reject(signal?.reason);
    signal?.addEventListener("abort", giveUp);
    this.#calls.add(call);
    this.#watch ??= setInterval(() => this.#check(), WATCH_MS).unref();
    try {
      return await Promise.race([this.#send(method, args), promise]);
    } catch (error) {
      // The session fails before the process is known to have ended.
      if (this.#session.isOver) await this.whenOver;
      throw this.#failure ?? error;
    } finally {
      signal?.removeEventListener("abort", giveUp);
      this.#calls.delete(call);
      this.#calledAt = Date.now();
      if (this.#calls.size === 0) this.#stopWatching();
    }
  }

  async #send(method: string, args: readonly unknown[]): Promise<unknown> {
    const root = await this.#session.root;
    return targetOf(root as object)?.send([method], args);
  }

  /** A question of the process about the storage of one of its objects. */
  async #answer(question: Buffer): Promise<Uint8Array | null> {
    const [facet, operation, args] = deserialize(question) as StorageQuestion;
    const storage = this.facets.get(facet)?.storage;
    try {
      if (storage === undefined) throw new Error("The object is gone.");
      const value = await storage.run(operation, args);
      return operation === "rest" ? null : serialize({ value });
    } catch (error) {
      if (operation === "rest") return null;
      const { name, message } = error instanceof Error ? error : new Error(String(error));
      return serialize({ error: { name, message } });
    }
  }

  end(reason: Error): void {
    this.#fail(reason);
    this.#process.end();
  }

  #fail(reason: Error): void {
    if (this.#failure !== null) return;
    this.#failure = reason;
    this.#stopWatching();
    // First: what their events have begun to write is undone, and the events fail with this reason.
    for (const { abort } of this.facets.values()) abort(reason.message);
    for (const { reject } of this.#calls) reject(reason);
  }

  #stopWatching(): void {
    clearInterval(this.#watch);
    this.#watch = undefined;
    this.#silence = null;
  }

  #check(): void {
    this.#ticks += 1;
    for (const { tick, reject } of this.#calls)
      if (this.#ticks - tick > MAX_CALL_MS / WATCH_MS)
        reject(new Error("The call of the loaded program has taken longer than 15 minutes."));
    const { processorMs } = this.#process;
    if (this.#silence === null) {
      const silence = { since: Date.now(), tick: this.#ticks, processorMs };
      this.#silence = silence;
      this.#session.ping().then(
        () => {
          if (this.#silence === silence) this.#silence = null;
        },
        // The process has ended, which `whenOver` reports.
        () => undefined,
      );
      return;
    }
    const { since, tick, processorMs: before } = this.#silence;
    const used = processorMs === null || before === null ? Date.now() - since : processorMs - before;
    if (used > this.#cpuMs) this.end(new Error("Worker exceeded CPU time limit."));
    else if (this.#ticks - tick > Math.max(SILENT_MS, this.#cpuMs) / WATCH_MS)
      this.end(new Error("The loaded program did not respond."));
  }
}

/** No text: the process can call methods of the host by their names. */
const ALLOW = Symbol("allow");

interface HostEvents {
  waiting(isWaiting: boolean): void;
  abort(facet: number, reason: string): void;
}

/** What the server does for the process: the only way out of it. */
class Host extends workersModule.RpcTarget {
  readonly #code: ProgramCode;
  readonly #name: string;
  readonly #logger: Logger;
  readonly #events: HostEvents;
  /** The process counts the requests of each call; here those of all calls together are counted, as the process is not trusted. */
  #requestsLeft = 0;
  #openRequests = 0;

  constructor(code: ProgramCode, name: string, logger: Logger, events: HostEvents) {
    super();
    this.#code = code;
    this.#name = name;
    this.#logger = logger;
    this.#events = events;
  }

  /** A call begins, which may make so many. */
  [ALLOW](): void {
    this.#requestsLeft += this.#code.limits.subRequests ?? Infinity;
  }

  async fetch(request: Request): Promise<Response> {
    const { globalOutbound: outbound } = this.#code;
    if (outbound === null) throw new Error(NO_NETWORK);
    if (this.#requestsLeft < 1 || this.#openRequests >= MAX_OPEN_REQUESTS)
      throw new Error("Too many subrequests.");
    this.#requestsLeft -= 1;
    this.#openRequests += 1;
    try {
      return await this.#send(request);
    } finally {
      this.#openRequests -= 1;
    }
  }

  #send(request: Request): Promise<Response> {
    const { globalOutbound: outbound } = this.#code;
    if (outbound === undefined) return fetch(request);
    return (outbound as { fetch(request: Request): Promise<Response> }).fetch(request);
  }

  async trace(trace: Parameters<LoadedHost["trace"]>[0]): Promise<void> {
    for (const { level, message } of trace.logs)
      this.#logger.info(
        { program: this.#name, level, message: message.join(" ") },
        "a loaded program wrote a line",
      );
    const event = { ...trace, scriptName: this.#name, event: null, diagnosticsChannelEvents: [] };
    for (const tail of this.#code.tails)
      await (tail as { tail(events: object[]): Promise<void> }).tail([event]);
  }

  async waiting(isWaiting: boolean): Promise<void> {
    this.#events.waiting(isWaiting);
  }

  async abort(facet: number, reason: string): Promise<void> {
    this.#events.abort(facet, reason);
  }
}

function reasonOf({ signal, errors }: ProcessEnd): Error {
  if (signal === "SIGXCPU") return new Error("Worker exceeded CPU time limit.");
  if (OUT_OF_MEMORY.test(errors)) return new Error("Worker exceeded memory limit.");
  const [line = ""] = errors.split("\n").filter((text) => text.trim() !== "");
  return new Error(`The process of the loaded program has ended${line === "" ? "" : `: ${line}`}.`);
}

/** Of a request: its caller may give it up. */
function signalOf(args: readonly unknown[] | null): AbortSignal | null {
  const [request] = args ?? [];
  return request instanceof Request ? request.signal : null;
}
