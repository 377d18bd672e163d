/**
 * Earlier contents of one object, in a database of their own. A content is cut into chunks, and of each chunk only the versions that differ are stored, compressed.
 *
 *   point        a content, with its time; null for a content of another object, which is no part of this one's past
 *   restoration  what the next load of the object restores, and afterwards the point with the content before it
 *
 * The database is open only while it is used, and belongs to no node in between: whichever node runs the object, or an object that restores a snapshot of it, opens it.
 */
import { hash } from "node:crypto";
import { setImmediate as nextLoop, setTimeout as sleep } from "node:timers/promises";
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { SignalboxError } from "@signalbox/protocol";
import { SerialByKey } from "../../core/serial.ts";
import { sql } from "../../core/sql.ts";
import {
  type InstanceDatabase,
  InstanceElsewhereError,
  InstanceFencedError,
  type InstanceStore,
  type Ownership,
} from "../../engines/instance-store/index.ts";

const SCHEMA = `
  CREATE TABLE past_point (id INTEGER PRIMARY KEY, at INTEGER, bytes INTEGER NOT NULL, keep_until INTEGER NOT NULL);
  CREATE TABLE past_chunk (chunk INTEGER NOT NULL, point INTEGER NOT NULL, hash BLOB NOT NULL, data BLOB NOT NULL, PRIMARY KEY (chunk, point));
  CREATE TABLE past_restoration (id INTEGER PRIMARY KEY, point INTEGER NOT NULL, is_foreign INTEGER NOT NULL, undo INTEGER);`;

/** Four pages of an object's database. Larger ones would store more of what has not changed, smaller ones compress worse. */
const CHUNK_BYTES = 4096;
/** Work of one iteration of the event loop, in chunks: about a millisecond. */
const CHUNKS_AT_ONCE = 64;
const COMPRESSION = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
const HASH_BYTES = 16;
/** Another node that uses the database has done so after milliseconds. */
const RETRY_MS = 50;
const MAX_RETRIES = 200;

export interface Restoration {
  readonly point: number;
  /** The content is that of another object. */
  readonly isForeign: boolean;
  /** The content before; null until it was restored. */
  readonly undo: number | null;
}

export interface NewPoint {
  readonly now: number;
  readonly keepForMs: number;
  /** The content is not that of the object. */
  readonly isForeign?: boolean;
}

export interface PastStorage {
  readonly store: InstanceStore;
  readonly ownership: Pick<Ownership, "release"> | null;
  /** Work with databases of this store. */
  readonly running: Set<Promise<void>>;
}

/** Of all objects of the process. */
const users = new SerialByKey();

export class PastVersions {
  readonly #storage: PastStorage;
  /** Of the database. */
  readonly #name: string;

  constructor(storage: PastStorage, name: string) {
    this.#storage = storage;
    this.#name = name;
  }

  /** Stores a content unless it is that of the last point; returns its point. Points that are not kept any longer are removed. */
  record(content: Uint8Array, point: NewPoint): Promise<number> {
    return this.#use((database) => record(database, content, point));
  }

  /** Null if there is no such point. */
  read(point: number): Promise<Uint8Array | null> {
    return this.#look((database) => read(database, point));
  }

  /** The last point at or before the time; null if there is none. */
  findPoint(at: number): Promise<number | null> {
    return this.#look(
      (database) =>
        database.get<{ id: number }>(
          sql`SELECT id FROM past_point WHERE at <= ${at} ORDER BY at DESC, id DESC LIMIT 1`,
        )?.id ?? null,
    );
  }

  has(point: number): Promise<boolean> {
    return this.#look(
      (database) => database.get(sql`SELECT 1 FROM past_point WHERE id = ${point}`) !== undefined,
    );
  }

  /** Returns the id of the restoration. */
  plan(point: number, isForeign: boolean): Promise<number> {
    return this.#use((database) => {
      const row = database.get<{ id: number }>(
        sql`SELECT COALESCE(max(id), 0) + 1 AS id FROM past_restoration`,
      );
      const id = row?.id ?? 1;
      database.run(
        sql`INSERT INTO past_restoration (id, point, is_foreign) VALUES (${id}, ${point}, ${isForeign ? 1 : 0})`,
      );
      return id;
    });
  }

  findRestoration(id: number): Promise<Restoration | null> {
    return this.#look((database) => {
      const row = database.get<{ point: number; is_foreign: number; undo: number | null }>(
        sql`SELECT point, is_foreign, undo FROM past_restoration WHERE id = ${id}`,
      );
      return row === undefined ? null : { point: row.point, isForeign: row.is_foreign === 1, undo: row.undo };
    });
  }

  async undoneBy(id: number, point: number): Promise<void> {
    await this.#use((database) =>
      database.run(sql`UPDATE past_restoration SET undo = ${point} WHERE id = ${id}`),
    );
  }

  remove(): Promise<void> {
    return this.#serially(() => this.#storage.store.destroy(this.#name));
  }

  /** Runs the function in a transaction. Resolves when what it has written is durable. */
  #use<T>(work: (database: InstanceDatabase) => T | Promise<T>): Promise<T> {
    return this.#withDatabase(async (database) => {
      database.begin();
      try {
        const result = await work(database);
        database.commit();
        await database.sync();
        return result;
      } finally {
        database.rollback();
      }
    });
  }

  /** Reads. An object without a past gets no database by it. */
  async #look<T>(work: (database: InstanceDatabase) => T | Promise<T>): Promise<T> {
    let isNew = false;
    try {
      return await this.#withDatabase((database) => {
        ({ isNew } = database);
        return work(database);
      });
    } finally {
      if (isNew) await this.remove();
    }
  }

  #withDatabase<T>(work: (database: InstanceDatabase) => T | Promise<T>): Promise<T> {
    const { store, ownership } = this.#storage;
    return this.#serially(async () => {
      const database = await store.open(this.#name, SCHEMA);
      try {
        return await work(database);
      } finally {
        await database.close();
        await ownership?.release([this.#name]);
      }
    });
  }

  /**
   * One after the other in this process. Another node may have the database for a moment. The caller must not take the errors of this database for those of the object
   * itself, which would be looked for elsewhere.
   */
  #serially<T>(work: () => Promise<T>): Promise<T> {
    const running = users.run(this.#name, async () => {
      for (let attempt = 1; ; attempt++) {
        try {
          return await work();
        } catch (cause) {
          const isElsewhere = cause instanceof InstanceElsewhereError;
          if (!isElsewhere && !(cause instanceof InstanceFencedError)) throw cause;
          if (!isElsewhere || attempt === MAX_RETRIES)
            throw new SignalboxError("overloaded", { message: "The past of the object is in use", cause });
        }
        await sleep(RETRY_MS);
      }
    });
    const ended = running.then(
      () => undefined,
      () => undefined,
    );
    this.#storage.running.add(ended);
    void ended.then(() => this.#storage.running.delete(ended));
    return running;
  }
}

async function record(
  database: InstanceDatabase,
  content: Uint8Array,
  { now, keepForMs, isForeign = false }: NewPoint,
): Promise<number> {
  const last = database.get<{ id: number; at: number | null; bytes: number }>(
    sql`SELECT id, at, bytes FROM past_point ORDER BY id DESC LIMIT 1`,
  );
  const point = (last?.id ?? 0) + 1;
  const hashes = new Map(
    database
      .all<{ chunk: number; hash: Uint8Array }>(
        sql`SELECT chunk, hash, max(point) FROM past_chunk GROUP BY chunk`,
      )
      .map(({ chunk, hash: known }) => [chunk, Buffer.from(known)]),
  );
  let isChanged = last === undefined || last.bytes !== content.length;
  for (let chunk = 0; chunk * CHUNK_BYTES < content.length; chunk++) {
    if (chunk % CHUNKS_AT_ONCE === CHUNKS_AT_ONCE - 1) await nextLoop();
    const bytes = content.subarray(chunk * CHUNK_BYTES, (chunk + 1) * CHUNK_BYTES);
    const digest = hash("sha256", bytes, "buffer").subarray(0, HASH_BYTES);
    if (hashes.get(chunk)?.equals(digest) === true) continue;
    isChanged = true;
    database.run(
      sql`INSERT INTO past_chunk (chunk, point, hash, data) VALUES (${chunk}, ${point}, ${digest}, ${zstdCompressSync(bytes, COMPRESSION)})`,
    );
  }
  const keepUntil = now + keepForMs;
  if (!isChanged && last !== undefined && (last.at === null) === isForeign) {
    database.run(sql`UPDATE past_point SET keep_until = max(keep_until, ${keepUntil}) WHERE id = ${last.id}`);
    return last.id;
  }
  database.run(
    sql`INSERT INTO past_point (id, at, bytes, keep_until) VALUES (${point}, ${isForeign ? null : now}, ${content.length}, ${keepUntil})`,
  );
  forget(database, now);
  return point;
}

/** The last of the points that are over stays: it is the content at the time at which the history begins. */
function forget(database: InstanceDatabase, now: number): void {
  const { changes } = database.run(sql`DELETE FROM past_point WHERE keep_until < ${now} AND id <
    (SELECT max(id) FROM past_point WHERE keep_until < ${now} AND at IS NOT NULL)`);
  if (changes === 0) return;
  // A version of a chunk belongs to the points from its own to the one before the next version.
  database.run(sql`DELETE FROM past_chunk WHERE NOT EXISTS (SELECT 1 FROM past_point p WHERE p.id >= past_chunk.point AND p.id < COALESCE(
    (SELECT min(n.point) FROM past_chunk n WHERE n.chunk = past_chunk.chunk AND n.point > past_chunk.point), 9223372036854775807))`);
  database.run(sql`DELETE FROM past_restoration WHERE undo NOT IN (SELECT id FROM past_point)`);
}

async function read(database: InstanceDatabase, point: number): Promise<Uint8Array | null> {
  const row = database.get<{ bytes: number }>(sql`SELECT bytes FROM past_point WHERE id = ${point}`);
  if (row === undefined) return null;
  const content = new Uint8Array(row.bytes);
  for (let chunk = 0; chunk * CHUNK_BYTES < row.bytes; chunk++) {
    if (chunk % CHUNKS_AT_ONCE === CHUNKS_AT_ONCE - 1) await nextLoop();
    const found = database.get<{ data: Uint8Array }>(
      sql`SELECT data FROM past_chunk WHERE chunk = ${chunk} AND point <= ${point} ORDER BY point DESC LIMIT 1`,
    );
    if (found === undefined) throw new Error("the past of the object is damaged: a chunk is missing");
    content.set(zstdDecompressSync(found.data), chunk * CHUNK_BYTES);
  }
  return content;
}
