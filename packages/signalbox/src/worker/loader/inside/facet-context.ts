/** Inside of the process of a loaded program: `ctx` of an object whose class the program has. Its storage is in the server; the program waits for each answer. */
import { deserialize, serialize } from "node:v8";
import { type ListOptions, SqlStorageCursor } from "../../../agents/calls.ts";
import { askParent, tellParent } from "../../../engines/program-process/index.ts";
import type { SqlAnswer } from "../facet-storage.ts";

type Entries = readonly (readonly [string, unknown])[];
type Answer = { readonly value: unknown } | { readonly error: { name: string; message: string } };
type Cells = ConstructorParameters<typeof SqlStorageCursor>[1];

/** As programs without types expect it: any value becomes text. */
const toText: (value: unknown) => string = String;

const NOT_HERE = "is not available to objects of loaded programs on Signalbox";

/** The questions of one object. */
class Questions {
  readonly #facet: number;
  #isResting = true;

  constructor(facet: number) {
    this.#facet = facet;
  }

  ask(operation: string, ...args: readonly unknown[]): unknown {
    const answer = deserialize(askParent(serialize([this.#facet, operation, args]))) as Answer;
    if ("value" in answer) return answer.value;
    const { name, message } = answer.error;
    throw Object.assign(new Error(message), name === "Error" ? {} : { name });
  }

  /** For what may write: when the event loop comes to a pause, the server may store it. */
  change(operation: string, ...args: readonly unknown[]): unknown {
    if (this.#isResting) {
      this.#isResting = false;
      setImmediate(() => {
        this.#isResting = true;
        tellParent(serialize([this.#facet, "rest", []]));
      });
    }
    return this.ask(operation, ...args);
  }
}

class FacetKv {
  readonly #questions: Questions;

  constructor(questions: Questions) {
    this.#questions = questions;
  }

  get(key: string): unknown {
    return (this.#questions.ask("get", key) as { value: unknown } | undefined)?.value;
  }

  put(key: string, value: unknown): void {
    this.#questions.change("put", [[key, value]]);
  }

  delete(key: string): boolean {
    return this.#questions.change("delete", [key]) === 1;
  }

  list(options?: ListOptions): Iterable<readonly [string, unknown]> {
    return this.#questions.ask("list", options) as Entries;
  }
}

class FacetStorageClient {
  readonly kv: FacetKv;
  readonly sql: object;
  readonly #questions: Questions;

  constructor(questions: Questions) {
    this.#questions = questions;
    this.kv = new FacetKv(questions);
    this.sql = {
      Cursor: SqlStorageCursor,
      exec: (query: string, ...bindings: readonly unknown[]) => {
        const { columns, rows, rowsWritten } = questions.change("sql", query, bindings) as SqlAnswer;
        return new SqlStorageCursor(columns, rows as Cells, rowsWritten);
      },
      get databaseSize() {
        return questions.ask("size");
      },
    };
  }

  async get(keys: string | readonly string[]): Promise<unknown> {
    if (typeof keys === "string") return this.kv.get(keys);
    const found = keys.map(
      (key) => [key, this.#questions.ask("get", key) as { value: unknown } | undefined] as const,
    );
    return new Map(
      found.flatMap(([key, entry]) => (entry === undefined ? [] : [[key, entry.value] as const])),
    );
  }

  async put(keyOrEntries: string | Readonly<Record<string, unknown>>, value?: unknown): Promise<void> {
    if (typeof keyOrEntries !== "string") this.#questions.change("put", Object.entries(keyOrEntries));
    else if (value === undefined) throw new TypeError("put() called with undefined value.");
    else this.kv.put(keyOrEntries, value);
  }

  async delete(keys: string | readonly string[]): Promise<boolean | number> {
    if (typeof keys === "string") return this.kv.delete(keys);
    return this.#questions.change("delete", keys) as number;
  }

  async list(options?: ListOptions): Promise<Map<string, unknown>> {
    return new Map(this.kv.list(options));
  }

  async deleteAll(): Promise<void> {
    this.#questions.change("deleteAll");
  }

  transactionSync<T>(work: () => T): T {
    this.#questions.change("begin");
    let isKept = false;
    try {
      const result = work();
      isKept = true;
      return result;
    } finally {
      this.#questions.ask("end", isKept);
    }
  }

  async transaction<T>(
    work: (transaction: FacetStorageClient & { rollback(): void }) => Promise<T> | T,
  ): Promise<T> {
    this.#questions.change("begin");
    let isKept = true;
    const rollback = () => {
      isKept = false;
    };
    try {
      return await work(Object.assign(Object.create(this) as FacetStorageClient, { rollback }));
    } catch (error) {
      isKept = false;
      throw error;
    } finally {
      this.#questions.change("end", isKept);
    }
  }

  /** A result of a call leaves the server when everything that was written before is durable. */
  async sync(): Promise<void> {
    this.#questions.ask("sync");
  }

  async getAlarm(): Promise<null> {
    return null;
  }

  async setAlarm(): Promise<never> {
    throw new Error("Facets currently cannot set alarms.");
  }

  async deleteAlarm(): Promise<void> {
    // There is none.
  }
}

export interface FacetContextParts {
  readonly facet: number;
  readonly id: { readonly text: string; readonly name: string | undefined };
  readonly props: unknown;
  readonly exports: object;
  readonly waitUntil: (work: unknown) => void;
  /** Ends the object at once. */
  readonly abort: (reason: string) => void;
}

export class FacetContext {
  readonly id: object;
  readonly props: unknown;
  readonly exports: object;
  readonly storage: FacetStorageClient;
  readonly waitUntil: (work: unknown) => void;
  readonly #abort: (reason: string) => void;
  /** What events wait for. */
  #blocked: Promise<unknown> = Promise.resolve();

  constructor({ facet, id, props, exports, waitUntil, abort }: FacetContextParts) {
    const { text, name } = id;
    this.id = { name, toString: () => text, equals: (other: unknown) => String(other) === text };
    this.props = props;
    this.exports = exports;
    this.storage = new FacetStorageClient(new Questions(facet));
    this.waitUntil = waitUntil;
    this.#abort = abort;
  }

  get [Symbol.toStringTag](): string {
    return "DurableObjectState";
  }

  get facets(): never {
    throw new Error(`ctx.facets ${NOT_HERE}`);
  }

  /** Resolves when an event may start. */
  get ready(): Promise<unknown> {
    return this.#blocked;
  }

  async blockConcurrencyWhile<T>(work: () => Promise<T> | T): Promise<T> {
    const done = Promise.resolve().then(work);
    this.#blocked = Promise.all([this.#blocked, done]);
    // Events that wait fail with it.
    this.#blocked.catch(() => undefined);
    try {
      return await done;
    } catch (error) {
      this.#abort(String(error));
      throw error;
    }
  }

  abort(reason?: unknown): never {
    const text =
      reason === undefined ? "Application called abort() to reset Durable Object." : toText(reason);
    this.#abort(text);
    throw new Error(text);
  }

  acceptWebSocket(): never {
    throw new Error(`acceptWebSocket() ${NOT_HERE}: use accept() of the WebSocket`);
  }

  getWebSockets(): [] {
    return [];
  }
}
