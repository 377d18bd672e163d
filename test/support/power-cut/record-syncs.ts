/**
 * Loaded into the server process (`node --import`): records which bytes of the data folder are durable, so that a
 * test can remove everything else. `disk-after-cut.ts` rebuilds the folder from the record.
 *
 * Two kinds of syncs count.
 *
 * 1. Syncs through `node:fs` (`FileHandle.datasync`, `sync`, and the equivalent functions). The content of a file
 *    when the sync *started* is durable when the sync has *ended*; the record is written before the caller is notified,
 *    so every later output of the server can rely on it. Names, removals and renames are durable when their folder was
 *    synced. Databases and WALs of instances are plain files: SQLite never syncs them (`synchronous=OFF`).
 * 2. Syncs by SQLite for the control plane's database, inside a statement and not observable. They follow rules
 *    (confirmed with a system-call trace and documented in SQLite's sources) for `synchronous=NORMAL` and WAL mode:
 *    a. A checkpoint syncs the WAL, writes pages into the main file and syncs the main file. It covers the whole WAL,
 *       since there are no other readers. Nothing else writes the main file.
 *    b. After a checkpoint the next commit restarts the WAL: it writes a header with new salts and syncs it before the
 *       first frame.
 *    c. SQLite syncs the header and the folder of a new WAL with the first frame, and the main file when it closes.
 *    JavaScript never runs in the middle of a statement, so at each inspection of a WAL the content of the main file is
 *    durable (a); if the main file changed since the last inspection and the WAL has not restarted, the whole WAL is
 *    durable (a); if it has restarted, its header is (b).
 *
 * Assumptions: the database is written on the main thread, and there is at most one checkpoint between two
 * inspections, which holds for transactions far smaller than the checkpoint threshold. Databases of other threads
 * (the call log) are not included and survive unchanged.
 *
 * Everything in the data folder when the process starts is taken as durable, unless the journal exists already: then
 * an earlier process was killed, and its unsynced writes are still unsynced.
 * See docs/decisions/0028.
 */
import fs, { type BigIntStats } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { dirname, join, relative } from "node:path";
import { isMainThread } from "node:worker_threads";
import { appendRecord, applyPatch, type FileId, type FolderEntry, readJournal } from "./sync-journal.ts";
import { generationOf, hasFrames, isControlPlane, WAL_HEADER_BYTES } from "./wal-file.ts";

const ROOT = fs.realpathSync(process.env["POWER_CUT_ROOT"] ?? "");
const JOURNAL_PATH = process.env["POWER_CUT_JOURNAL"] ?? "";
const JOURNAL = fs.openSync(JOURNAL_PATH, "a");

/**
 * File systems record change times with a granularity of a few milliseconds: an unchanged time within that interval
 * proves nothing.
 */
const CLOCK_TICK_NS = 20_000_000n;

// ── Durable content ──

const durable = new Map<FileId, Buffer>();
/**
 * Number of the inspection behind the last record of a file or folder; syncs may end in another order than they
 * started.
 */
const recordedInspection = new Map<string, number>();
let inspections = 0;

function recordFile(id: FileId, content: Buffer, inspection: number): void {
  if ((recordedInspection.get(id) ?? -1) > inspection) return;
  recordedInspection.set(id, inspection);
  const known = durable.get(id);
  if (known?.equals(content) === true) return;
  const offset = known === undefined ? 0 : commonPrefix(known, content);
  patchFile(id, { offset, size: content.length, bytes: content.subarray(offset) });
}

function patchFile(id: FileId, patch: { offset: number; size: number; bytes: Buffer }): void {
  durable.set(id, applyPatch(durable.get(id) ?? Buffer.alloc(0), patch));
  appendRecord(JOURNAL, { kind: "file", id, ...patch });
}

function recordFolder(path: string, entries: Record<string, FolderEntry>, inspection: number): void {
  const name = relative(ROOT, path);
  if ((recordedInspection.get(`/${name}`) ?? -1) > inspection) return;
  recordedInspection.set(`/${name}`, inspection);
  appendRecord(JOURNAL, { kind: "folder", path: name, entries });
}

// ── Inspection of databases ──

interface Watched {
  /** Stays open: closing it would release the locks that SQLite holds on the file. */
  readonly fd: number;
  readonly id: FileId;
  changedAtNs: bigint;
  generation: string | null;
  wal: FileId | null;
}

const watched = new Map<FileId, Watched>();

/** Inspects a database and its WAL; returns the content of the WAL. */
function inspect(database: string, walFd: number): { wal: FileId; content: Buffer } {
  const number = inspections++;
  const wal = idOf(original.fstatSync(walFd, { bigint: true }));
  const content = readWhole(walFd);
  const generation = generationOf(content);
  const main = watch(database);
  const wasSameWal = main.wal === wal && main.generation === generation;
  if (hasMainFileChanged(main)) {
    const before = durable.get(main.id);
    const now = readWhole(main.fd);
    if (before === undefined || !before.equals(now)) {
      recordFile(main.id, now, number);
      if (wasSameWal) recordFile(wal, content, number);
    }
  }
  const hasRestarted = main.wal === wal && main.generation !== null && main.generation !== generation;
  if (hasFrames(content) && (hasRestarted || !wasSameWal)) {
    const size = Math.max(WAL_HEADER_BYTES, durable.get(wal)?.length ?? 0);
    patchFile(wal, { offset: 0, size, bytes: content.subarray(0, WAL_HEADER_BYTES) });
  }
  main.wal = wal;
  main.generation = generation;
  return { wal, content };
}

function watch(database: string): Watched {
  const id = idOf(original.statSync(database, { bigint: true }));
  let main = watched.get(id);
  if (main === undefined) {
    main = { fd: original.openSync(database, "r"), id, changedAtNs: -1n, generation: null, wal: null };
    watched.set(id, main);
  }
  return main;
}

function hasMainFileChanged(main: Watched): boolean {
  const { mtimeNs } = original.fstatSync(main.fd, { bigint: true });
  const isSettled = mtimeNs === main.changedAtNs && nowNs() - mtimeNs > CLOCK_TICK_NS;
  main.changedAtNs = mtimeNs;
  return !isSettled;
}

// ── Interception of node:fs ──

const original = { ...fs };
const paths = new WeakMap<object, string>();
const pathsOfFds = new Map<number, string>();

/** Reads the content now; the returned function records it as synced. Null for paths outside the data folder. */
function beginSync(path: string | undefined, fd: number): (() => void) | null {
  if (path === undefined || !isInside(path)) return null;
  const stats = original.fstatSync(fd, { bigint: true });
  if (stats.isDirectory()) {
    const number = inspections++;
    const entries = listFolder(path);
    return () => recordFolder(path, entries, number);
  }
  if (isControlPlaneWal(path)) {
    const number = inspections;
    const { wal, content } = inspect(path.slice(0, -"-wal".length), fd);
    return () => recordFile(wal, content, number);
  }
  const number = inspections++;
  // The descriptor may be write-only, and closing another descriptor of a database would release SQLite's locks.
  const content = path.endsWith(".db") ? readWhole(watch(path).fd) : original.readFileSync(path);
  return () => recordFile(idOf(stats), content, number);
}

/** The control plane's WAL is opened for syncing: inspect it without a record. */
function inspectPath(path: string): void {
  if (!isControlPlaneWal(path) || !original.existsSync(path)) return;
  const fd = original.openSync(path, "r");
  inspect(path.slice(0, -"-wal".length), fd);
  original.closeSync(fd);
}

function isControlPlaneWal(path: string): boolean {
  return path.endsWith("-wal") && isControlPlane(relative(ROOT, path.slice(0, -"-wal".length)));
}

function wrapPromise<Args extends unknown[], Result>(
  owner: object,
  name: string,
  wrap: (call: (...args: Args) => Promise<Result>, self: unknown, args: Args) => Promise<Result>,
): void {
  const functions = owner as Record<string, (...args: Args) => Promise<Result>>;
  const call = functions[name];
  if (call === undefined) throw new Error(`node:fs has no ${name}`);
  functions[name] = function wrapped(this: unknown, ...args: Args) {
    return wrap((...same) => call.apply(this, same), this, args);
  };
}

if (isMainThread) await watchNodeFs();

async function watchNodeFs(): Promise<void> {
  wrapPromise<[string, ...unknown[]], object>(fs.promises, "open", async (open, _self, args) => {
    const handle = await open(...args);
    paths.set(handle, args[0]);
    inspectPath(args[0]);
    return handle;
  });

  const probe = await fs.promises.open(ROOT, "r");
  const handlePrototype = Object.getPrototypeOf(probe) as object;
  await probe.close();
  for (const name of ["datasync", "sync"]) {
    wrapPromise<[], void>(handlePrototype, name, async (sync, self) => {
      const handle = self as { readonly fd: number };
      const end = beginSync(paths.get(handle), handle.fd);
      await sync();
      end?.();
    });
  }

  fs.openSync = ((path: string, ...rest: [string?, number?]) => {
    const fd = original.openSync(path, ...(rest as [string]));
    pathsOfFds.set(fd, path);
    return fd;
  }) as typeof fs.openSync;
  fs.renameSync = (from, to) => {
    original.renameSync(from, to);
    for (const [fd, path] of pathsOfFds) if (path === from) pathsOfFds.set(fd, String(to));
  };
  for (const name of ["fsyncSync", "fdatasyncSync"] as const) {
    fs[name] = (fd: number) => {
      const end = beginSync(pathsOfFds.get(fd), fd);
      original[name](fd);
      end?.();
    };
  }
  for (const name of ["fsync", "fdatasync"] as const) {
    const wrapped = (fd: number, callback: fs.NoParamCallback) => {
      const end = beginSync(pathsOfFds.get(fd), fd);
      original[name](fd, (error) => {
        if (error === null) end?.();
        callback(error);
      });
    };
    fs[name] = wrapped as (typeof fs)[typeof name];
  }
  syncBuiltinESMExports();
}

// ── State at the start ──

if (isMainThread) {
  if (fs.fstatSync(JOURNAL).size === 0) recordTree(ROOT);
  else for (const [id, content] of readJournal(JOURNAL_PATH).files) durable.set(id, content);
}

function recordTree(folder: string): void {
  const entries = listFolder(folder);
  recordFolder(folder, entries, inspections++);
  for (const [name, { id, isFolder }] of Object.entries(entries)) {
    const path = join(folder, name);
    if (isFolder) recordTree(path);
    else recordFile(id, original.readFileSync(path), inspections++);
  }
}

function listFolder(folder: string): Record<string, FolderEntry> {
  const entries: Record<string, FolderEntry> = {};
  for (const name of original.readdirSync(folder)) {
    const stats = original.lstatSync(join(folder, name), { bigint: true, throwIfNoEntry: false });
    if (stats !== undefined) entries[name] = { id: idOf(stats), isFolder: stats.isDirectory() };
  }
  return entries;
}

// ── Files ──

function idOf(stats: BigIntStats): FileId {
  return `${stats.ino}-${stats.birthtimeNs}`;
}

function isInside(path: string): boolean {
  const real = original.existsSync(path) ? original.realpathSync(path) : path;
  return real === ROOT || dirname(real) === ROOT || real.startsWith(`${ROOT}/`);
}

function readWhole(fd: number): Buffer {
  const content = Buffer.alloc(original.fstatSync(fd).size);
  let at = 0;
  while (at < content.length) {
    const count = original.readSync(fd, content, at, content.length - at, at);
    if (count === 0) break;
    at += count;
  }
  return content.subarray(0, at);
}

function commonPrefix(a: Buffer, b: Buffer): number {
  const step = 4096;
  const end = Math.min(a.length, b.length);
  let at = 0;
  while (at < end && a.compare(b, at, Math.min(at + step, end), at, Math.min(at + step, end)) === 0)
    at += step;
  return Math.min(at, end);
}

function nowNs(): bigint {
  return BigInt(Date.now()) * 1_000_000n;
}
