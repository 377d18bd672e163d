/**
 * The past of an object: bookmarks and snapshots of its storage, and their restoration before the next start of the object.
 *
 * Invariants:
 * 1. A bookmark that a program has received can be restored: its content is durable, and was durable in the object itself.
 * 2. A restoration is one transaction of the object's database. Until it is durable the object has its mark, so that a crash repeats it.
 * 3. The content before a restoration is stored first; its bookmark is known when the restoration is planned.
 */
import type { Clock } from "../../core/clock.ts";
import { clearTimer, setTimer, type Timer } from "../../core/clock.ts";
import { type SqlQuery, sql } from "../../core/sql.ts";
import type { InstanceDatabase } from "../../engines/instance-store/index.ts";
import type { OutputGate, Participant, Transactions } from "../../engines/turn-runtime/index.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { databaseName, type InstanceRef, keyOf } from "../instance/instance-ref.ts";
import { parseBookmark, toBookmark } from "./bookmark.ts";
import { type PastStorage, PastVersions } from "./past-versions.ts";

const DAY_MS = 86_400_000;
/** Of bookmarks that a program has asked for; as on the originals. */
const KEPT_MS = 30 * DAY_MS;
/** With a history, what was written within this time is one point. */
const HISTORY_STEP_MS = 10_000;
/** A content is read as a whole. */
const MAX_BYTES = 256 * 1024 * 1024;

export interface PastOptions extends Omit<PastStorage, "running"> {
  readonly clock: Clock;
  readonly logger: Logger;
  /** How many days objects can be restored to any time; 0: only bookmarks that programs ask for are stored. */
  readonly historyDays: number;
}

/** The content of an object at a bookmark, for another object. A plain value: it can be passed in calls, and stored. */
export interface ObjectSnapshot {
  readonly object: string;
  readonly bookmark: string;
}

/** The pasts of all objects. */
export class ObjectPasts {
  readonly options: PastOptions;
  readonly #storage: PastStorage;

  constructor(options: PastOptions) {
    this.options = options;
    this.#storage = { store: options.store, ownership: options.ownership, running: new Set() };
  }

  /** Resolves when no database of a past is open any more: before the store is closed. */
  async settle(): Promise<void> {
    while (this.#storage.running.size > 0) await Promise.all(this.#storage.running);
  }

  versionsOf(ref: InstanceRef): PastVersions {
    return new PastVersions(this.#storage, databaseName({ ...ref, name: `${ref.name}:past` }));
  }

  remove(ref: InstanceRef): Promise<void> {
    return this.versionsOf(ref).remove();
  }

  /** Null if nothing is to be restored; otherwise the database with the other content, opened again. */
  restore(database: InstanceDatabase, ref: InstanceRef): Promise<InstanceDatabase> | null {
    if (database.isNew) return null;
    const row = database.get<{ restoration: number | null }>(
      sql`SELECT restoration FROM _signalbox_object WHERE id = 1`,
    );
    const id = row?.restoration ?? null;
    return id === null ? null : this.#restore(database, ref, id);
  }

  async #restore(database: InstanceDatabase, ref: InstanceRef, id: number): Promise<InstanceDatabase> {
    const { clock, logger, store } = this.options;
    const versions = this.versionsOf(ref);
    const planned = await versions.findRestoration(id);
    const content = planned === null ? null : await versions.read(planned.point);
    if (planned === null || content === null) {
      // For example after a restore of a backup without it.
      logger.error({ object: keyOf(ref) }, "the bookmark that an object wanted to restore does not exist");
      database.begin();
      database.run(sql`UPDATE _signalbox_object SET restoration = NULL WHERE id = 1`);
      database.commit();
      await database.sync();
      return database;
    }
    const now = clock.now();
    await versions.undoneBy(id, await versions.record(database.snapshot(), { now, keepForMs: KEPT_MS }));
    const kept = statementsFor(database, planned.isForeign);
    await database.close();
    await store.replace(databaseName(ref), content, kept);
    logger.info({ object: keyOf(ref) }, "an object was restored");
    return store.open(databaseName(ref));
  }
}

export interface ObjectPastParts {
  readonly ref: InstanceRef;
  readonly database: InstanceDatabase;
  readonly transactions: Transactions;
  readonly outputs: OutputGate;
  /** Keeps the object in memory. */
  readonly hold: () => () => void;
}

/** Of one object in memory. */
export class ObjectPast implements Participant {
  readonly #pasts: ObjectPasts;
  readonly #parts: ObjectPastParts;
  readonly #versions: PastVersions;
  #timer: Timer | undefined;
  #release: (() => void) | null = null;
  #changedAt = 0;

  constructor(pasts: ObjectPasts, parts: ObjectPastParts) {
    this.#pasts = pasts;
    this.#parts = parts;
    this.#versions = pasts.versionsOf(parts.ref);
    if (pasts.options.historyDays > 0) parts.transactions.join(this);
  }

  afterCommit(): void {
    this.#changedAt = this.#now();
    this.#release ??= this.#parts.hold();
    this.#timer ??= setTimer(this.#pasts.options.clock, () => void this.#step(), HISTORY_STEP_MS);
  }

  stop(): void {
    clearTimer(this.#timer);
    this.#timer = undefined;
    this.#release?.();
    this.#release = null;
  }

  async current(): Promise<string> {
    const at = this.#now();
    return toBookmark(this.#parts.ref, { point: await this.#record(at), restoration: 0 }, at);
  }

  async at(time: number): Promise<string> {
    const now = this.#now();
    if (time >= now) return this.current();
    const { historyDays } = this.#pasts.options;
    if (historyDays === 0)
      throw new Error(
        "getBookmarkForTime() needs a history of the object: set agents.worker.historyDays of Signalbox",
      );
    // What the next step would store.
    if (this.#release !== null && this.#changedAt <= time) return this.current();
    const point = await this.#versions.findPoint(time);
    if (point === null) throw new Error("The object has no history at that time.");
    return toBookmark(this.#parts.ref, { point, restoration: 0 }, time);
  }

  /** The object restores the bookmark when it is started next. Returns the bookmark of the content before that. */
  async restoreBookmark(text: string): Promise<string> {
    return this.#plan(await this.#find(this.#versions, this.#parts.ref, text), false);
  }

  async snapshot(bookmark: string | undefined): Promise<ObjectSnapshot> {
    const { ref } = this.#parts;
    if (bookmark !== undefined) await this.#find(this.#versions, ref, bookmark);
    return { object: `${ref.agent}/${ref.name}`, bookmark: bookmark ?? (await this.current()) };
  }

  /** The content becomes part of this object's own past, so that the other object may end. */
  async restoreSnapshot({ object, bookmark }: ObjectSnapshot): Promise<string> {
    const { ref } = this.#parts;
    const [agent = "", name = ""] = object.split("/", 2);
    const source = { account: ref.account, agent, name };
    const versions = this.#pasts.versionsOf(source);
    const content = await versions.read(await this.#find(versions, source, bookmark));
    if (content === null) throw new Error("The snapshot does not exist any more.");
    const isForeign = keyOf(source) !== keyOf(ref);
    const point = await this.#versions.record(content, {
      now: this.#now(),
      keepForMs: KEPT_MS,
      isForeign: true,
    });
    return this.#plan(point, isForeign);
  }

  /** Throws for a bookmark that does not exist. */
  async #find(versions: PastVersions, ref: InstanceRef, text: string): Promise<number> {
    const { point, restoration } = parseBookmark(ref, text);
    if (restoration === 0) {
      if (await versions.has(point)) return point;
    } else {
      const { undo = null } = (await versions.findRestoration(restoration)) ?? {};
      if (undo !== null && (await versions.has(undo))) return undo;
    }
    throw new Error(
      "The bookmark does not exist: it is too old, or of a restoration that did not take place.",
    );
  }

  async #plan(point: number, isForeign: boolean): Promise<string> {
    const { database, outputs, ref, transactions } = this.#parts;
    const restoration = await this.#versions.plan(point, isForeign);
    transactions.open();
    database.run(sql`UPDATE _signalbox_object SET restoration = ${restoration} WHERE id = 1`);
    await outputs.pass();
    return toBookmark(ref, { point, restoration }, this.#now());
  }

  async #record(at: number): Promise<number> {
    const { database, outputs, transactions } = this.#parts;
    transactions.requirePresent();
    if (transactions.isHeld) throw new Error("A bookmark cannot be taken inside of a transaction.");
    const content = contentOf(database);
    await outputs.pass();
    return this.#versions.record(content, { now: at, keepForMs: KEPT_MS });
  }

  /** Stores what has changed since the last point. */
  async #step(): Promise<void> {
    const { clock, historyDays, logger } = this.#pasts.options;
    const { database, ref, transactions } = this.#parts;
    this.#timer = undefined;
    if (transactions.isHeld) {
      this.#timer = setTimer(clock, () => void this.#step(), HISTORY_STEP_MS);
      return;
    }
    const release = this.#release;
    this.#release = null;
    try {
      const keepForMs = historyDays * DAY_MS;
      await this.#versions.record(contentOf(database), { now: this.#now(), keepForMs });
    } catch (err) {
      logger.error({ err, object: keyOf(ref) }, "the history of an object could not be stored");
    } finally {
      release?.();
    }
  }

  #now(): number {
    return this.#pasts.options.clock.now();
  }
}

function contentOf(database: InstanceDatabase): Uint8Array {
  const size = database.get<{ bytes: number }>(
    sql`SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size`,
  );
  if ((size?.bytes ?? 0) > MAX_BYTES)
    throw new Error(`Bookmarks and snapshots are for objects of at most ${MAX_BYTES / 2 ** 20} MiB.`);
  return database.snapshot();
}

/** What stays as it is now: who the object is, and its facets, which have databases of their own. Alarms of another object are not taken over. */
function statementsFor(database: InstanceDatabase, isForeign: boolean): SqlQuery[] {
  const meta = database.all<{ key: string; value: string }>(sql`SELECT key, value FROM _signalbox_meta`);
  const facets = database.all<{ name: string }>(sql`SELECT name FROM _signalbox_facet`);
  const { name = null } =
    database.get<{ name: string | null }>(sql`SELECT name FROM _signalbox_object WHERE id = 1`) ?? {};
  return [
    sql`DELETE FROM _signalbox_meta`,
    ...meta.map(({ key, value }) => sql`INSERT INTO _signalbox_meta (key, value) VALUES (${key}, ${value})`),
    sql`DELETE FROM _signalbox_facet`,
    ...facets.map((facet) => sql`INSERT INTO _signalbox_facet (name) VALUES (${facet.name})`),
    sql`UPDATE _signalbox_object SET restoration = NULL, name = ${name} WHERE id = 1`,
    ...(isForeign
      ? [sql`UPDATE _signalbox_object SET alarm_at = NULL, alarm_retries = 0, alarm_running = 0 WHERE id = 1`]
      : []),
  ];
}
