/**
 * The shared engine: instances whose history is in PostgreSQL. Any node can open any instance; the node that opened it last is its owner. Local files
 * are a cache: losing them loses nothing.
 */
import { hash } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { SqlQuery } from "../../../core/sql.ts";
import { fullJitterDelay } from "../../../core/retry.ts";
import { DiskRoom } from "../disk-room.ts";
import { FolderSync } from "../folder-sync.ts";
import { ImmutableDatabase } from "../immutable-database.ts";
import { type InstancePath, InstancePaths } from "../instance-path.ts";
import type { InstanceDatabase, InstanceStoreOptions, QueryLimits, QueryResult } from "../instance-store.ts";
import { CacheBudget } from "../wal/cache-budget.ts";
import { SpareWal } from "../wal/spare-wal.ts";
import { Templates } from "../journal/template.ts";
import { PAGE_BYTES } from "../page-bytes.ts";
import { queryInProcess } from "../read-only-query.ts";
import { prepareReplacement, toFrames } from "../replacement.ts";
import { ReservedNames } from "../reserved-names.ts";
import { CacheFiles } from "./cache-files.ts";
import { Compressor } from "./compressor.ts";
import { createCounters, type OwnershipCounters } from "./ownership-counters.ts";
import type { HeldInstance } from "./held-instance.ts";
import { History, type Store } from "./history.ts";
import { importFile } from "./import-file.ts";
import { type HistorySize, readHistorySize } from "./history-size.ts";
import { Lane } from "./lane.ts";
import { OwnedInstances } from "./owned-instances.ts";
import {
  InstanceElsewhereError,
  InstanceFencedError,
  type Nodes,
  type SharedInstanceStore,
} from "./ownership.ts";
import { HASH_BYTES } from "./record.ts";
import { restoreFile } from "./restore.ts";
import { SharedDatabase, type SharedDatabaseParts } from "./shared-database.ts";
import { Snapshots } from "./snapshots.ts";
import type { Statements } from "./statements.ts";
import { isPassing, toClientError } from "./unavailable.ts";

/** How long a start waits for a server. */
const START_WAIT_MS = 30_000;
const RETRY = { baseDelayMs: 100, maxDelayMs: 1000 };

export interface SharedStoreOptions extends Omit<InstanceStoreOptions, "segmentBytes"> {
  /**
   * The connection string of each PostgreSQL, which may name several servers. The first PostgreSQL says where each instance is. New instances are
   * spread over all of them; existing ones stay where they are.
   */
  readonly stores: readonly string[];
  readonly nodes: Nodes;
  /** Size of the local files of closed databases together. */
  readonly maxCacheBytes: number;
  /** A snapshot, or the removal of old records, failed and will be tried again. */
  readonly onError: (error: unknown) => void;
  /** For tests. */
  readonly statements?: Statements;
  /** For tests: how long records are kept after a snapshot. */
  readonly graceMs?: number;
}

export class SharedStore implements SharedInstanceStore {
  readonly ownership: OwnedInstances;
  readonly #paths: InstancePaths;
  readonly #room: DiskRoom;
  readonly #spareWal: SpareWal;
  readonly #cache: CacheFiles;
  readonly #templates: Templates;
  readonly #compressors: Compressor[] = [];
  readonly #snapshots: Snapshots;
  readonly #lanes: ReadonlyMap<History, Lane>;
  readonly #stores: readonly Store[];
  readonly #parts: SharedDatabaseParts;
  readonly #figures: OwnershipCounters = createCounters();
  /** Ids of databases that are open, or being opened or destroyed. */
  readonly #open = new Set<string>();
  #whenClosed: Promise<void> | null = null;

  static async open(options: SharedStoreOptions): Promise<SharedStore> {
    const histories = options.stores.map((url) => new History(url, options.statements));
    try {
      return new SharedStore(options, await numberStores(histories));
    } catch (error) {
      await Promise.all(histories.map((history) => history.close()));
      throw error;
    }
  }

  private constructor(options: SharedStoreOptions, stores: readonly Store[]) {
    const { folder, baseSchema, reservedNames, onFailure, onStall, onError, nodes } = options;
    this.#stores = stores;
    this.#paths = new InstancePaths(folder);
    this.#cache = new CacheFiles(this.#paths, options.maxCacheBytes);
    this.#room = new DiskRoom(this.#paths.root, onStall);
    this.#spareWal = new SpareWal(folder, new FolderSync(onFailure));
    this.#templates = new Templates(baseSchema);
    this.#snapshots = new Snapshots({ onError, figures: this.#figures, graceMs: options.graceMs });
    this.ownership = new OwnedInstances({
      stores,
      nodes,
      paths: this.#paths,
      format: baseSchema.version,
      figures: this.#figures,
    });
    this.#lanes = new Map(stores.map(({ history }) => [history, this.#createLane(history, nodes)]));
    this.#parts = {
      baseSchema,
      reserved: new ReservedNames(reservedNames),
      lane: ({ history }) => this.#laneOf(history),
      snapshots: this.#snapshots,
      spareWal: this.#spareWal,
      caches: new CacheBudget(),
      room: this.#room,
      onClose: (instance, isComplete) => this.#closed(instance, isComplete),
    };
  }

  async open(name: string, schema = ""): Promise<InstanceDatabase> {
    const place = this.#paths.find(name);
    if (this.#open.has(place.id)) throw new Error("the instance's database is open already");
    this.#room.require();
    this.#open.add(place.id);
    try {
      const instance = await this.#hold(name);
      return await this.#openHeld(place, instance, schema);
    } catch (error) {
      this.#open.delete(place.id);
      this.#forgetFenced(name);
      // What was restored only in part.
      if (this.#cache.find(place.id) === undefined) this.#cache.discard(place.id);
      throw toClientError(this.#room.explain(error));
    }
  }

  async openToRead(name: string): Promise<InstanceDatabase> {
    const { id, path } = this.#paths.find(name);
    if (this.#room.problem === null || !this.ownership.isHeld(name)) return this.open(name);
    // As for an instance that wakes: without a lease another node may have it.
    await this.ownership.confirm(name);
    const isCached = this.#cache.find(id) !== undefined && !this.#open.has(id);
    return isCached ? new ImmutableDatabase(path) : this.open(name);
  }

  async destroy(name: string): Promise<void> {
    const { id } = this.#paths.find(name);
    if (this.#open.has(id)) throw new Error("the instance's database is open");
    // Nothing opens it meanwhile.
    this.#open.add(id);
    try {
      // Again if another node has taken the instance, which this node did not notice.
      while (await this.ownership.exists(name)) {
        const instance = await this.#hold(name);
        if (await this.#destroyHeld(instance)) break;
      }
      this.#cache.discard(id);
    } finally {
      this.#open.delete(id);
    }
  }

  async #destroyHeld(instance: HeldInstance): Promise<boolean> {
    try {
      return await instance.history.destroy(instance);
    } catch (error) {
      throw toClientError(error);
    } finally {
      // Whatever became of it: the next call asks PostgreSQL.
      this.ownership.destroyed(instance.name);
    }
  }

  async replace(name: string, content: Uint8Array, statements: readonly SqlQuery[] = []): Promise<void> {
    const { id } = this.#paths.find(name);
    if (this.#open.has(id)) throw new Error("the instance's database is open");
    this.#open.add(id);
    try {
      if (!(await this.ownership.exists(name))) throw new Error("the instance has no database");
      const replacement = prepareReplacement(content, statements);
      const instance = await this.#hold(name);
      instance.dirtyParts = null;
      const lane = this.#laneOf(instance.history);
      await lane.append(instance, replacement.pageBytes, toFrames(replacement)).done.promise;
    } catch (error) {
      this.#forgetFenced(name);
      throw toClientError(error);
    } finally {
      // The next open reads the record.
      this.#cache.discard(id);
      this.#open.delete(id);
    }
  }

  async importFile(name: string, path: string): Promise<boolean> {
    const place = this.#paths.find(name);
    if (this.#open.has(place.id)) throw new Error("the instance's database is open");
    this.#open.add(place.id);
    try {
      const instance = await this.#hold(name);
      this.#paths.createFolder(place.path);
      const isImported = await importFile(instance, { source: path, target: place.path });
      await this.ownership.release([name]);
      return isImported;
    } catch (error) {
      this.#forgetFenced(name);
      throw toClientError(error);
    } finally {
      this.#open.delete(place.id);
      this.#cache.discard(place.id);
    }
  }

  queryReadOnly(snapshot: Uint8Array, text: string, limits: QueryLimits): Promise<QueryResult> {
    return queryInProcess(snapshot, text, limits);
  }

  get lagMs(): number {
    return Math.max(...[...this.#lanes.values()].map(({ lagMs }) => lagMs));
  }

  reconnect(): void {
    for (const { history } of this.#stores) history.connections.reconnect();
  }

  readSizes(): Promise<readonly HistorySize[]> {
    return Promise.all(
      this.#stores.map(({ history }) => history.connections.use(({ client }) => readHistorySize(client))),
    );
  }

  get problem(): string | null {
    return this.#room.problem;
  }

  requireRoom(): void {
    this.#room.require();
  }

  close(): Promise<void> {
    this.#whenClosed ??= this.#close();
    return this.#whenClosed;
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#lanes.values()].map((lane) => lane.close()));
    await this.#snapshots.close();
    await Promise.all(this.#compressors.map((compressor) => compressor.close()));
    await Promise.all(this.#stores.map(({ history }) => history.close()));
    await this.#room.close();
    await this.#spareWal.close();
    this.#cache.close();
  }

  /** Claims the instance unless this node owns it. */
  async #hold(name: string): Promise<HeldInstance> {
    const held = this.ownership.get(name);
    if (held !== undefined) {
      try {
        // While the lease is fresh, a node wakes its own instances without a query.
        await this.ownership.confirm(name);
        return held;
      } catch (error) {
        if (!(error instanceof InstanceFencedError)) throw error;
      }
    }
    const [outcome] = await this.ownership.claim([name]);
    if (outcome?.kind === "elsewhere") throw new InstanceElsewhereError(outcome.node);
    const instance = this.ownership.get(name);
    if (instance === undefined) throw new Error("the instance was taken by another node at once");
    return instance;
  }

  /** A restore has found that another node has the instance: the next call asks PostgreSQL. */
  #forgetFenced(name: string): void {
    const held = this.ownership.get(name);
    if (held !== undefined && held.fenced !== null) this.ownership.fence(held, held.fenced.fence);
  }

  async #openHeld(place: InstancePath, instance: HeldInstance, schema: string): Promise<SharedDatabase> {
    const { path } = place;
    this.#paths.createFolder(path);
    const isNew = await this.#prepareFile(place, instance);
    instance.requireHeld();
    const template = isNew ? await this.#useTemplate(instance, schema) : null;
    if (isNew) rmSync(path, { force: true });
    return SharedDatabase.open({ place, instance, template, parts: this.#parts });
  }

  /** Brings the local file to the state of the history. Returns whether the instance has no database yet. */
  async #prepareFile({ id: key, path }: InstancePath, instance: HeldInstance): Promise<boolean> {
    const { id, head, claimSeq } = instance;
    const entry = this.#cache.find(key);
    const isUsable = entry !== undefined && entry.id === id && entry.store === this.#nameOf(instance);
    const isCurrent = isUsable && entry.seq === head && entry.mark === instance.mark;
    this.#cache.open(key);
    if (isCurrent && existsSync(path)) {
      this.#figures.cacheHits += 1;
      return false;
    }
    if (claimSeq === 1 && head === 1) return true;
    const base = isUsable && existsSync(path) ? entry : null;
    const { isNew, usesFile } = await restoreFile(instance, path, base);
    if (usesFile) this.#figures.cacheHits += 1;
    else this.#figures.restores += 1;
    return isNew;
  }

  async #useTemplate(instance: HeldInstance, schema: string): Promise<Uint8Array> {
    const { bytes } = this.#templates.find(schema);
    const digest = hash("sha256", bytes, "buffer").subarray(0, HASH_BYTES);
    await instance.history.putTemplate(digest, bytes);
    instance.template = digest;
    instance.databasePages = bytes.length / PAGE_BYTES;
    return bytes;
  }

  #closed(instance: HeldInstance, isComplete: boolean): void {
    const { key, id, head, mark } = instance;
    this.#open.delete(key);
    if (isComplete && instance.fenced === null)
      this.#cache.closed(key, { id, seq: head, mark, store: this.#nameOf(instance) });
    else this.#cache.discard(key);
  }

  #nameOf({ history }: HeldInstance): string {
    return String(this.#stores.find((store) => store.history === history)?.number);
  }

  #createLane(history: History, nodes: Nodes): Lane {
    const compressor = new Compressor();
    this.#compressors.push(compressor);
    return new Lane({
      history,
      compressor,
      onFenced: (instance, reason, cause) => this.ownership.fence(instance, reason, cause),
      heldInstances: () => this.ownership.heldIn(history),
      cutOffMs: () => nodes.cutOffMs ?? 0,
      figures: this.#figures,
    });
  }

  #laneOf(history: History): Lane {
    const lane = this.#lanes.get(history);
    if (lane === undefined) throw new Error("the instance belongs to another store");
    return lane;
  }
}

/** The servers of a cluster may start in any order. */
async function openPatiently(history: History): Promise<string> {
  const startedAt = performance.now();
  for (let attempt = 1; ; attempt++) {
    try {
      return await history.open();
    } catch (error) {
      if (!isPassing(error) || performance.now() - startedAt > START_WAIT_MS) throw error;
    }
    await sleep(fullJitterDelay(attempt, RETRY));
  }
}

/** The first store is number 0; it numbers the others. */
async function numberStores(histories: readonly History[]): Promise<Store[]> {
  const [first] = histories;
  if (first === undefined) throw new Error("there is no store");
  const identities = await Promise.all(histories.map(openPatiently));
  if (new Set(identities).size !== identities.length)
    throw new Error("two of the stores are the same database");
  const others = identities.slice(1);
  const numbers = others.length === 0 ? new Map<string, number>() : await first.numberStores(others);
  return histories.map((history, i) => ({
    history,
    number: i === 0 ? 0 : (numbers.get(identities[i] ?? "") ?? 0),
  }));
}
