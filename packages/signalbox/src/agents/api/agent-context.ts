/** `this.ctx` of an agent: the part of an object's context that agents' programs use. The first argument of the constructor has it too. */
export interface AgentContext {
  readonly id: AgentId;
  readonly storage: { readonly sql: AgentSql };
  /** Keeps the instance in memory until the promise has settled. */
  waitUntil(work: Promise<unknown>): void;
}

/** SQL whose text is known at run time only. The same rules apply as for `this.sql`. */
export interface AgentSql {
  /** Runs one or more statements; the bindings and the rows belong to the last one. Bytes are returned as `ArrayBuffer`. */
  exec<Row = Record<string, string | number | null | ArrayBuffer>>(
    query: string,
    ...bindings: readonly unknown[]
  ): SqlCursor<Row>;
  /** Bytes that the database occupies. */
  readonly databaseSize: number;
}

/** The rows of one `exec`. All ways of reading share one position. */
export interface SqlCursor<Row> extends Iterable<Row> {
  readonly columnNames: readonly string[];
  readonly rowsRead: number;
  readonly rowsWritten: number;
  next(): { done?: false; value: Row } | { done: true; value?: undefined };
  toArray(): Row[];
  /** The only row. Throws if there is none, or if there are more. */
  one(): Row;
  /** The rows as arrays of values. */
  raw(): Iterable<unknown[]>;
}

/** Names an instance of a known agent. */
export class AgentId {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  toString(): string {
    return this.name;
  }

  equals(other: { readonly name?: string | undefined }): boolean {
    return other.name === this.name;
  }
}
