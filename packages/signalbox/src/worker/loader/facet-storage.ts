/**
 * The storage of a facet whose class is in a loaded program: operations come as questions of the process, and run on the database of the facet here.
 *
 * Invariants:
 * 1. What the program writes without a pause is one transaction: the first write opens it, `rest` ends it when the event loop of the program has come to a pause, or `sync`, which is
 *    answered. If the program ends before that, the facet is aborted, and the transaction with it.
 * 2. Transactions of the program are nested in it.
 * 3. An answer has a limited number of rows and bytes. The time of one statement is not limited: `node:sqlite` cannot interrupt it.
 */
import type { ListOptions, ObjectStorage } from "../../agents/calls.ts";

/** What a program asks of its storage. */
export type StorageQuestion = readonly [facet: number, operation: string, args: readonly unknown[]];

export interface SqlAnswer {
  readonly columns: readonly string[];
  readonly rows: readonly unknown[][];
  readonly rowsWritten: number;
}

interface Open {
  /** Keeps what was written, or not; resolves when the transaction has ended. */
  readonly end: (isKept: boolean) => Promise<void>;
}

/** Of one answer: the process waits for it whole. */
const ANSWER = { maxRows: 100_000, maxBytes: 32 * 1024 * 1024 };
const READS = /^\s*(?:select|explain|pragma|values)\b/i;

export class FacetStorage {
  readonly #storage: ObjectStorage;
  #pause: Open | null = null;
  readonly #open: Open[] = [];

  constructor(storage: ObjectStorage) {
    this.#storage = storage;
  }

  async run(operation: string, args: readonly unknown[]): Promise<unknown> {
    const storage = this.#storage;
    const [first, second] = args;
    switch (operation) {
      case "sql":
        if (!READS.test(String(first))) this.#write();
        return this.#sql(String(first), second as unknown[]);
      case "size":
        return storage.sql.databaseSize;
      case "get":
        return storage.kv.find(first as string);
      case "list":
        return this.#list(first as ListOptions | undefined);
      case "put":
        this.#write();
        storage.kv.putAll(first as [string, unknown][]);
        return undefined;
      case "delete":
        this.#write();
        return (first as string[]).filter((key) => storage.kv.delete(key)).length;
      case "deleteAll":
        this.#write();
        return storage.deleteAll();
      case "begin":
        this.#write();
        this.#open.push(this.#begin());
        return undefined;
      case "end":
        await this.#open.pop()?.end(first === true);
        return undefined;
      case "rest":
      case "sync":
        return this.#rest();
      default:
        throw new TypeError(`a storage has no operation ${operation}`);
    }
  }

  #sql(query: string, bindings: readonly unknown[]): SqlAnswer {
    const cursor = this.#storage.sql.execWithin(ANSWER, query, bindings);
    const { columnNames: columns, rowsWritten } = cursor;
    return { columns, rows: [...cursor.raw()], rowsWritten };
  }

  #list(options: ListOptions | undefined): [string, unknown][] {
    const { kv } = this.#storage;
    const { count, bytes } = kv.measure(options);
    if (count > ANSWER.maxRows || bytes > ANSWER.maxBytes)
      throw new RangeError(
        `The list has more than ${ANSWER.maxRows} entries or ${ANSWER.maxBytes} bytes. Use a limit.`,
      );
    return [...kv.list(options)];
  }

  #write(): void {
    this.#pause ??= this.#begin();
  }

  async #rest(): Promise<void> {
    // Those of `transaction()`, which may await, stay open.
    if (this.#open.length > 0) return;
    const pause = this.#pause;
    this.#pause = null;
    await pause?.end(true);
  }

  #begin(): Open {
    const ended = Promise.withResolvers<boolean>();
    const undone = new Error("rolled back");
    const done = this.#storage
      .transaction(async () => {
        if (!(await ended.promise)) throw undone;
      })
      .catch((error: unknown) => {
        if (error !== undone) throw error;
      });
    // A facet that is aborted has no use for it.
    done.catch(() => undefined);
    return {
      end: (isKept) => {
        ended.resolve(isKept);
        return done;
      },
    };
  }
}
