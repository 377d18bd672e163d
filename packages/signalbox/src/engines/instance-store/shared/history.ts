/**
 * The history of instances in one store: runs the statements and reports their outcome. `statements.ts` has the conditions.
 *
 * A method that writes resolves only if the commit is durable, on a synchronous standby too if there is one. Its rejection says nothing about the
 * outcome, unless `isStatementError` holds.
 */
import { randomBytes } from "node:crypto";
import type { QueryConfig, QueryResult } from "pg";
import { type OwnClaim, type SeenEpoch, type Statements, STATEMENTS } from "./statements.ts";
import { type StoreClient, StoreConnections } from "./store-connections.ts";
import { numberStores, openTables } from "./tables.ts";

/** Claims have random data, so that a record is identified by its content. */
export const CLAIM_BYTES = 8;
/** An instance may have many records. */
const MAX_DESTROY_MS = 300_000;

export interface InstanceRow {
  readonly id: number;
  readonly key: Buffer;
  /** 0: this store. */
  readonly store: number;
  readonly owner: string | null;
  readonly epoch: number;
  readonly format: number;
  readonly snapSeq: number;
  readonly partBytes: number;
  /** Created by this call, with a claim at position 1. */
  readonly isMade: boolean;
}

export interface Claimed {
  readonly id: number;
  readonly epoch: number;
  /** The position of the claim. */
  readonly seq: number;
  readonly snapSeq: number;
  readonly partBytes: number;
}

export interface NewRecord extends OwnClaim {
  readonly seq: number;
  readonly kind: string;
  readonly data: Buffer;
}

export interface InstanceState {
  readonly id: number;
  readonly owner: string | null;
  readonly epoch: number;
  /** The last position. */
  readonly head: number;
}

export interface StoredRecord {
  readonly seq: number;
  readonly kind: string;
  readonly data: Buffer;
}

export interface PageSize {
  readonly count: number;
  readonly bytes: number;
}

export interface Snapshot {
  readonly snapSeq: number;
  readonly pages: number;
  readonly pageBytes: number;
}

export interface SweptRange extends OwnClaim {
  /** The last position to delete. */
  readonly upTo: number;
  /** The claim of the epoch, which stays. */
  readonly claimSeq: number;
}

export interface NewSnapshot extends OwnClaim {
  readonly seq: number;
  readonly pages: number;
  readonly pageBytes: number;
  /** Number of parts of the whole database. */
  readonly partCount: number;
  /** The changed parts, produced one after the other. */
  readonly parts: AsyncIterable<{ readonly part: number; readonly data: Buffer }>;
}

/** The commit did not reach a synchronous standby. */
export class UnconfirmedError extends Error {
  constructor() {
    super("PostgreSQL did not wait for its synchronous standby");
  }
}

export class History {
  readonly connections: StoreConnections;
  readonly #statements: Statements;
  readonly #templates = new Set<string>();
  #identity: string | null = null;

  constructor(url: string, statements: Statements = STATEMENTS) {
    this.connections = new StoreConnections(url);
    this.#statements = statements;
  }

  /** Creates the tables. Returns the identity of the store. */
  async open(): Promise<string> {
    this.#identity ??= await this.connections.use(({ client }) => openTables(client));
    return this.#identity;
  }

  numberStores(identities: readonly string[]): Promise<Map<string, number>> {
    return this.connections.use(({ client }) => numberStores(client, identities));
  }

  /** Creates what does not exist. `stores` has the number of the store for each new instance. */
  async locate(
    keys: readonly Buffer[],
    stores: readonly number[],
    node: string,
    format: number,
    data: Buffer = randomBytes(CLAIM_BYTES),
  ): Promise<InstanceRow[]> {
    return this.#write(async ({ client }) => {
      const { rows } = await client.query<InstanceRow>({
        name: "locate",
        text: this.#statements.locate,
        values: [keys, stores, node, format, data],
      });
      // A row that this statement has created is not visible to its second part.
      return rows;
    });
  }

  find(keys: readonly Buffer[]): Promise<InstanceRow[]> {
    return this.connections.use(async ({ client }) => {
      const statement = { name: "find", text: this.#statements.find, values: [keys] };
      return (await client.query<InstanceRow>(statement)).rows;
    });
  }

  /** Null if another node was faster for one of them: nothing was written then. */
  takeOver(
    node: string,
    format: number,
    claims: readonly SeenEpoch[],
    data: Buffer = randomBytes(CLAIM_BYTES),
  ): Promise<Claimed[] | null> {
    return this.#write(async ({ client }) => {
      const text = this.#statements.takeOver(node, format, claims, data);
      const results = (await client.query(text)) as unknown as QueryResult[];
      const claimed = (results.at(-2)?.rows ?? []) as { id: number; seq: number; epoch: number }[];
      const rows = (results.at(-1)?.rows ?? []) as { id: number; snapSeq: number; partBytes: number }[];
      if (claimed.length !== claims.length) {
        await client.query("ROLLBACK");
        return null;
      }
      await client.query("COMMIT");
      const byId = new Map(rows.map((row) => [row.id, row]));
      return claimed.map((claim) => ({ ...claim, snapSeq: 0, partBytes: 0, ...byId.get(claim.id) }));
    });
  }

  /** Returns the ids whose record was written. Uses the connection of the caller, one statement at a time. */
  async append(connection: StoreClient, records: readonly NewRecord[], bytes: Buffer): Promise<Set<number>> {
    const offsets: number[] = [];
    let offset = 1;
    for (const { data } of records) {
      offsets.push(offset);
      offset += data.length;
    }
    const { rows } = await connection.client.query<{ agent: number }>({
      name: "append",
      text: this.#statements.append,
      values: [
        bytes,
        listOf(records, ({ id }) => id),
        listOf(records, ({ seq }) => seq),
        listOf(records, ({ epoch }) => epoch),
        `{${offsets.join(",")}}`,
        listOf(records, ({ data }) => data.length),
        listOf(records, ({ kind }) => kind),
        listOf(records, ({ node }) => node),
      ],
    });
    if (connection.takeWarning()) await this.#confirm(connection);
    return new Set(rows.map(({ agent }) => agent));
  }

  /** What is read is durable: a commit that follows it has reached the standby. */
  readStates(ids: readonly number[]): Promise<Map<number, InstanceState>> {
    return this.connections.use(async (connection) => {
      const statement = { name: "states", text: this.#statements.states, values: [ids] };
      const { rows } = await connection.client.query<InstanceState>(statement);
      return new Map(rows.map((row) => [row.id, row]));
    });
  }

  /** Of the records that this node's claims had acknowledged: how many PostgreSQL does not have any more. Counts none too many. */
  countLost(claims: readonly (OwnClaim & { readonly head: number })[]): Promise<number> {
    return this.connections.use(async ({ client }) => {
      const { rows } = await client.query<{ lost: number }>(this.#statements.lost, [
        claims.map(({ id }) => id),
        claims.map(({ epoch }) => epoch),
        claims.map(({ head }) => head),
      ]);
      return rows[0]?.lost ?? 0;
    });
  }

  /** Resolves when all commits before the call are durable, on a synchronous standby too. */
  async barrier(): Promise<void> {
    await this.connections.use((connection) => this.#confirm(connection));
  }

  /** The stored size of all parts; null if this node is not the owner any more. */
  snapshot(next: NewSnapshot): Promise<number | null> {
    const { id, epoch, node, seq, pages, pageBytes, partCount, parts } = next;
    return this.#write(async ({ client }) => {
      await client.query("BEGIN");
      const owned = await client.query(this.#statements.beginSnapshot, [id, epoch, node, seq]);
      if (owned.rowCount !== 1) {
        await client.query("ROLLBACK");
        return null;
      }
      for await (const { part, data } of parts)
        await client.query(this.#statements.putPart, [id, part, seq, data]);
      await client.query(this.#statements.cutParts, [id, partCount]);
      const { rows } = await client.query<{ partBytes: number }>(this.#statements.snapshot, [
        id,
        seq,
        pages,
        pageBytes,
      ]);
      await client.query("COMMIT");
      return rows[0]?.partBytes ?? 0;
    });
  }

  async sweep(ranges: readonly SweptRange[]): Promise<void> {
    await this.connections.use(({ client }) =>
      client.query(this.#statements.sweep, [
        ranges.map(({ id }) => id),
        ranges.map(({ epoch }) => epoch),
        ranges.map(({ node }) => node),
        ranges.map(({ upTo }) => upTo),
        ranges.map(({ claimSeq }) => claimSeq),
      ]),
    );
  }

  async release(owned: readonly OwnClaim[], to: string | null): Promise<void> {
    // In the order in which claims lock the rows.
    const sorted = owned.toSorted((a, b) => a.id - b.id);
    await this.#write(({ client }) =>
      client.query(this.#statements.release, [
        sorted.map(({ id }) => id),
        sorted.map(({ epoch }) => epoch),
        sorted.map(({ node }) => node),
        to,
      ]),
    );
  }

  /** False if this node is not the owner any more. */
  async destroy(claim: OwnClaim): Promise<boolean> {
    const statement: QueryConfig & { query_timeout: number } = {
      text: this.#statements.destroy(claim),
      query_timeout: MAX_DESTROY_MS,
    };
    const results = (await this.#write(({ client }) => client.query(statement))) as unknown as QueryResult[];
    return results.some(({ command, rows }) => command === "SELECT" && rows.length === 1);
  }

  /** Null if this node is not the owner any more. */
  readSnapshot({ id, epoch, node }: OwnClaim): Promise<Snapshot | null> {
    return this.connections.use(async ({ client }) => {
      const { rows } = await client.query<Snapshot>(this.#statements.snapshotOf, [id, epoch, node]);
      return rows[0] ?? null;
    });
  }

  readParts(id: number, from: number, count: number): Promise<{ part: number; seq: number; data: Buffer }[]> {
    return this.connections.use(async ({ client }) => {
      const { rows } = await client.query<{ part: number; seq: number; data: Buffer }>(
        this.#statements.parts,
        [id, from, count],
      );
      return rows;
    });
  }

  /** At most `count`, and about `bytes` of data; at least one. */
  readRecords(id: number, after: number, upTo: number, { count, bytes }: PageSize): Promise<StoredRecord[]> {
    return this.connections.use(async ({ client }) => {
      const { rows } = await client.query<StoredRecord>(this.#statements.records, [
        id,
        after,
        upTo,
        count,
        bytes,
      ]);
      return rows;
    });
  }

  /** The template must exist before a record refers to it. */
  async putTemplate(hash: Buffer, bytes: Uint8Array): Promise<void> {
    const name = hash.toString("hex");
    if (this.#templates.has(name)) return;
    await this.#write(({ client }) =>
      client.query("INSERT INTO agent_template (hash, bytes) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING", [
        hash,
        Buffer.from(bytes),
      ]),
    );
    this.#templates.add(name);
  }

  readTemplate(hash: Buffer): Promise<Buffer> {
    return this.connections.use(async ({ client }) => {
      const { rows } = await client.query<{ bytes: Buffer }>(
        "SELECT bytes FROM agent_template WHERE hash = $1",
        [hash],
      );
      const [row] = rows;
      if (row === undefined) throw new Error(`PostgreSQL lacks the template ${hash.toString("hex")}`);
      return row.bytes;
    });
  }

  close(): Promise<void> {
    return this.connections.close();
  }

  #write<T>(work: (connection: StoreClient) => Promise<T>): Promise<T> {
    return this.connections.use(async (connection) => {
      connection.takeWarning();
      const result = await work(connection);
      if (connection.takeWarning()) await this.#confirm(connection);
      return result;
    });
  }

  /** A small commit, which waits for the standby itself. */
  async #confirm(connection: StoreClient): Promise<void> {
    connection.takeWarning();
    await connection.client.query("UPDATE agent_store SET barrier = barrier + 1");
    if (connection.takeWarning()) throw new UnconfirmedError();
  }
}

export interface Store {
  readonly history: History;
  /** In the first store's table; 0 for the first store itself. */
  readonly number: number;
}

function listOf(records: readonly NewRecord[], value: (record: NewRecord) => number | string): string {
  return `{${records.map(value).join(",")}}`;
}
