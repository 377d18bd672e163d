/**
 * The state of an instance: one JSON value that is replaced as a whole.
 *
 * Invariants:
 * 1. After every commit and rollback `value` equals the stored state; in between `value` includes the writes of the open segment.
 * 2. The row is written once per segment, however often the state was set.
 * 3. A value that is not JSON or exceeds the limit is refused before anything changes.
 */
import type { InstanceDatabase } from "../../engines/instance-store/index.ts";
import { sql } from "../../core/sql.ts";
import type { Participant, Transactions } from "../../engines/turn-runtime/index.ts";

export class StateError extends Error {
  override readonly name = "StateError";
}

export class InstanceState implements Participant {
  readonly #database: InstanceDatabase;
  readonly #transactions: Pick<Transactions, "open" | "join">;
  readonly #maxBytes: number;
  #committedJson: string | undefined;
  #json: string | undefined;
  #value: unknown;
  #isParsed = false;
  #isDirty = false;

  constructor(
    database: InstanceDatabase,
    transactions: Pick<Transactions, "open" | "join">,
    maxBytes: number,
  ) {
    this.#database = database;
    this.#transactions = transactions;
    this.#maxBytes = maxBytes;
    this.#committedJson = database.isNew ? undefined : readStored(database);
    this.#json = this.#committedJson;
    transactions.join(this);
  }

  /** Undefined when the state was never set. */
  get value(): unknown {
    if (!this.#isParsed) {
      this.#value = this.#json === undefined ? undefined : JSON.parse(this.#json);
      this.#isParsed = true;
    }
    return this.#value;
  }

  /** The stored state. A copy: the agent's code may change `value` in place. */
  get committed(): unknown {
    return this.#committedJson === undefined ? undefined : JSON.parse(this.#committedJson);
  }

  /** What `value` is, as JSON; null if it was never set. */
  get json(): string | null {
    return this.#json ?? null;
  }

  /** Returns the new state as JSON. */
  set(next: unknown): string {
    const json = toStateJson(next, this.#maxBytes);
    this.#transactions.open();
    this.#json = json;
    this.#value = next;
    this.#isParsed = true;
    this.#isDirty = true;
    return json;
  }

  beforeCommit(): void {
    if (!this.#isDirty) return;
    const value = this.#json ?? "null";
    this.#database.run(
      this.#committedJson === undefined
        ? sql`INSERT INTO _signalbox_state (id, value) VALUES (1, ${value})`
        : sql`UPDATE _signalbox_state SET value = ${value} WHERE id = 1`,
    );
  }

  afterCommit(): void {
    if (!this.#isDirty) return;
    this.#isDirty = false;
    this.#committedJson = this.#json;
  }

  afterRollback(): void {
    if (!this.#isDirty) return;
    this.#isDirty = false;
    // The failed code may have changed the old value in place, so it is parsed again.
    this.#json = this.#committedJson;
    this.#isParsed = false;
    this.#value = undefined;
  }
}

function readStored(database: InstanceDatabase): string | undefined {
  return database.get<{ value: string }>(sql`SELECT value FROM _signalbox_state WHERE id = 1`)?.value;
}

function toStateJson(value: unknown, maxBytes: number): string {
  let json: string | undefined;
  try {
    json = JSON.stringify(value);
  } catch (cause) {
    throw new StateError(`the state is not JSON: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
  }
  if (json === undefined)
    throw new StateError("the state is not JSON: it is undefined, a function or a symbol");
  // A UTF-16 code unit is at most three bytes of UTF-8, so most states need no exact count.
  if (json.length * 3 > maxBytes && Buffer.byteLength(json) > maxBytes) {
    throw new StateError(`the state is larger than ${maxBytes} bytes`);
  }
  return json;
}
