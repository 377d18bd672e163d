/** Random operations for the differential test: the same for the same seed. */

export type Operation = readonly [name: string, ...args: unknown[]];

/** What one request asks for. */
export interface Series {
  readonly object: "Storage" | "Peer";
  readonly name: string;
  readonly how: "run" | "burst" | "reset";
  readonly operations: readonly Operation[];
}

/** Numbers of values in `programs/random/src/values.ts`; the last three cannot be stored. */
const VALUES = 22;
/** How many values each statement of `programs/random/src/storage.ts` takes. */
const STATEMENTS = [
  0, 1, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0,
];
const KEYS = ["a", "b", "ab", "abc", "b1", "é", "😀", "Z", "", "list", "z".repeat(20)];
/** Values that SQLite takes, by number. */
const SQL_VALUES = [0, 1, 2, 4, 10, 11, 17, 19];

export class RandomOperations {
  #seed: number;

  constructor(seed: number) {
    this.#seed = seed >>> 0;
  }

  /** Series for one object. In the middle it leaves memory, so that the last one reads what is stored. */
  storage(object: number): Series[] {
    const name = `storage-${object}`;
    const series = (): Series => {
      const how = this.#pick(["run", "run", "burst"] as const);
      const next = () => (how === "burst" ? this.#simple() : this.#storage());
      return { object: "Storage", name, how, operations: Array.from({ length: 8 }, next) };
    };
    return [series(), series(), { object: "Storage", name, how: "reset", operations: [] }, series()];
  }

  calls(object: number): Series {
    const operations = Array.from({ length: 10 }, () => this.#call());
    return { object: "Peer", name: `peer-${object}`, how: "run", operations };
  }

  #next(below: number): number {
    // Mulberry32: small, and the same everywhere.
    this.#seed = (this.#seed + 0x6d2b79f5) >>> 0;
    let mixed = this.#seed;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  }

  #pick<T>(items: readonly T[]): T {
    return items[this.#next(items.length)] as T;
  }

  #key(): string {
    return this.#pick(KEYS);
  }

  #value(): number {
    return this.#next(VALUES);
  }

  #range(): object {
    const range: Record<string, unknown> = {};
    for (const name of ["start", "startAfter", "end", "prefix"])
      if (this.#next(4) === 0) range[name] = this.#key();
    if (this.#next(3) === 0) range["reverse"] = this.#next(2) === 0;
    if (this.#next(3) === 0) range["limit"] = this.#pick([1, 2, 100, 0, -1]);
    return range;
  }

  #sql(): Operation {
    const number = this.#next(STATEMENTS.length);
    return ["sql", number, ...Array.from({ length: STATEMENTS[number] ?? 0 }, () => this.#pick(SQL_VALUES))];
  }

  #simple(): Operation {
    return this.#pick<() => Operation>([
      () => ["put", this.#key(), this.#value()],
      () => ["put", this.#key(), this.#value()],
      () => ["put many", [1, 2, 3].map(() => [this.#key(), this.#value()])],
      () => ["get", this.#key()],
      () => ["get", [this.#key(), this.#key()]],
      () => ["delete", this.#key()],
      () => ["delete", [this.#key(), this.#key()]],
      () => ["list", this.#range()],
      () => ["list"],
      () => ["alarm"],
      () => ["set alarm"],
      () => ["deleteAlarm"],
    ])();
  }

  #sync(): Operation {
    return this.#pick<() => Operation>([
      () => this.#sql(),
      () => this.#sql(),
      () => this.#sql(),
      () => ["kv put", this.#key(), this.#value()],
      () => ["kv get", this.#key()],
      () => ["kv delete", this.#key()],
      () => ["kv list", this.#range()],
    ])();
  }

  #storage(): Operation {
    return this.#pick<() => Operation>([
      () => this.#simple(),
      () => this.#simple(),
      () => this.#sync(),
      () => this.#sync(),
      () => this.#sync(),
      () => [
        "transaction",
        [this.#simple(), this.#sync(), this.#simple()],
        this.#pick(["", "", "throw", "rollback"]),
      ],
      () => ["sync transaction", [this.#sync(), this.#sync(), this.#sync()], this.#pick(["", "throw"])],
      () => (this.#next(5) === 0 ? ["deleteAll"] : this.#simple()),
    ])();
  }

  #call(): Operation {
    return this.#pick<() => Operation>([
      () => ["echo", this.#value()],
      () => ["fail", this.#next(6)],
      () => ["call back", this.#next(4)],
      () => ["call back that fails", this.#next(6)],
      () => ["keep", this.#next(2) === 0],
      () => ["use kept"],
      () => ["kind", this.#pick(["target", "function"])],
      () => ["target", this.#next(10), this.#next(10)],
      () => ["remote target", this.#next(10), this.#next(10)],
      () => ["pipelined", this.#next(10), this.#next(10)],
      () => ["missing", this.#pick(["nothing", "alarm", "webSocketClose"])],
      () => ["burst", Array.from({ length: 2 + this.#next(4) }, () => this.#event())],
      () => ["messages", 1 + this.#next(4)],
    ])();
  }

  #event(): Operation {
    return this.#pick<() => Operation>([
      () => ["plain"],
      () => ["microtasks", this.#next(5)],
      () => ["stored"],
      () => ["blocked"],
    ])();
  }
}
