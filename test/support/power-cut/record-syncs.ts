/**
 * Loaded into the server process (`node --import`): writes down which bytes of the data folder are on the disk for sure, so that a test can
 * take everything else away. `disk-after-cut.ts` rebuilds the folder from it.
 *
 * Two kinds of syncs count.
 *
 * 1. Those our process asks for through `node:fs` (`FileHandle.datasync`, `sync`, and the functions of the same meaning). What a file held
 *    when the sync *started* is on the disk once the sync has *ended*; the record is written before the caller learns of the end, so whatever
 *    the server says after it can rely on it. Names, removals and renames are on the disk when their folder was synced. Instances' databases
 *    and logs are files like any other: SQLite never syncs them by itself (`synchronous=OFF`).
 * 2. Those SQLite does by itself for the control plane's database, deep inside a statement where nobody can watch. They follow rules (seen
 *    with a system-call trace, and written down in SQLite's sources), for `synchronous=NORMAL` and WAL mode:
 *    a. A checkpoint syncs the log, writes pages into the main file, syncs the main file. It covers the whole log, since nobody else reads.
 *       No other thing writes the main file.
 *    b. After a checkpoint the next commit starts the log over: it writes a header with new salts and syncs it before the first frame.
 *    c. SQLite syncs a new log's header and folder with the first frame, and the main file when it closes.
 *    JavaScript never sees SQLite half-way through a statement, so whenever this file looks at a log, what the main file holds is on the disk (a);
 *    if that changed since the last look and the log has not started over, so is the whole log (a); if it has, its header is (b).
 *
 * What it assumes: that database is written on the main thread; there is at most one checkpoint between two looks, which holds for transactions
 * far smaller than a checkpoint's pages. Databases of other threads (the call log) are not part of it and survive as they are.
 *
 * The disk is taken to hold everything that is in the data folder when the process starts; unless the journal has begun already: then an
 * earlier process was killed, and what it left behind unsynced is unsynced still.
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

/** File systems stamp changes with a clock that ticks every few milliseconds: within a tick a time that stayed tells nothing. */
const CLOCK_TICK_NS = 20_000_000n;

// ── What is on the disk ──

const durable = new Map<FileId, Buffer>();
/** Number of the look that the last record of a file or folder came from; syncs may end in another order than they started. */
const recordedLook = new Map<string, number>();
let looks = 0;

function recordFile(id: FileId, content: Buffer, look: number): void {
  if ((recordedLook.get(id) ?? -1) > look) return;
  recordedLook.set(id, look);
  const known = durable.get(id);
  if (known?.equals(content) === true) return;
  const offset = known === undefined ? 0 : commonPrefix(known, content);
  patchFile(id, { offset, size: content.length, bytes: content.subarray(offset) });
}

function patchFile(id: FileId, patch: { offset: number; size: number; bytes: Buffer }): void {
  durable.set(id, applyPatch(durable.get(id) ?? Buffer.alloc(0), patch));
  appendRecord(JOURNAL, { kind: "file", id, ...patch });
}

function recordFolder(path: string, entries: Record<string, FolderEntry>, look: number): void {
  const name = relative(ROOT, path);
  if ((recordedLook.get(`/${name}`) ?? -1) > look) return;
  recordedLook.set(`/${name}`, look);
  appendRecord(JOURNAL, { kind: "folder", path: name, entries });
}

// ── Looks at databases ──

interface Watched {
  /** Stays open: closing it would drop the locks SQLite holds on the file. */
  readonly fd: number;
  readonly id: FileId;
  changedAtNs: bigint;
  generation: string | null;
  log: FileId | null;
}

const watched = new Map<FileId, Watched>();

/** Looks at a database and its log; returns the log's content. */
function look(database: string, logFd: number): { log: FileId; content: Buffer } {
  const number = looks++;
  const log = idOf(original.fstatSync(logFd, { bigint: true }));
  const content = readWhole(logFd);
  const generation = generationOf(content);
  const main = watch(database);
  const wasSameLog = main.log === log && main.generation === generation;
  if (hasMainFileChanged(main)) {
    const before = durable.get(main.id);
    const now = readWhole(main.fd);
    if (before === undefined || !before.equals(now)) {
      recordFile(main.id, now, number);
      if (wasSameLog) recordFile(log, content, number);
    }
  }
  const hasStartedOver = main.log === log && main.generation !== null && main.generation !== generation;
  if (hasFrames(content) && (hasStartedOver || !wasSameLog)) {
    const size = Math.max(WAL_HEADER_BYTES, durable.get(log)?.length ?? 0);
    patchFile(log, { offset: 0, size, bytes: content.subarray(0, WAL_HEADER_BYTES) });
  }
  main.log = log;
  main.generation = generation;
  return { log, content };
}

function watch(database: string): Watched {
  const id = idOf(original.statSync(database, { bigint: true }));
  let main = watched.get(id);
  if (main === undefined) {
    main = { fd: original.openSync(database, "r"), id, changedAtNs: -1n, generation: null, log: null };
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

// ── Watching node:fs ──

const original = { ...fs };
const paths = new WeakMap<object, string>();
const pathsOfFds = new Map<number, string>();

/** Takes the content now; the returned function writes it down as synced. Null for what is outside the data folder. */
function beginSync(path: string | undefined, fd: number): (() => void) | null {
  if (path === undefined || !isInside(path)) return null;
  const stats = original.fstatSync(fd, { bigint: true });
  if (stats.isDirectory()) {
    const number = looks++;
    const entries = listFolder(path);
    return () => recordFolder(path, entries, number);
  }
  if (isControlPlaneLog(path)) {
    const number = looks;
    const { log, content } = look(path.slice(0, -"-wal".length), fd);
    return () => recordFile(log, content, number);
  }
  const number = looks++;
  // The descriptor may be for writing only; and closing another one of a database would drop SQLite's locks.
  const content = path.endsWith(".db") ? readWhole(watch(path).fd) : original.readFileSync(path);
  return () => recordFile(idOf(stats), content, number);
}

/** The control plane's log is opened for syncing: a look that no sync follows. */
function lookAt(path: string): void {
  if (!isControlPlaneLog(path) || !original.existsSync(path)) return;
  const fd = original.openSync(path, "r");
  look(path.slice(0, -"-wal".length), fd);
  original.closeSync(fd);
}

function isControlPlaneLog(path: string): boolean {
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
    lookAt(args[0]);
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

// ── The disk at the start ──

if (isMainThread) {
  if (fs.fstatSync(JOURNAL).size === 0) recordTree(ROOT);
  else for (const [id, content] of readJournal(JOURNAL_PATH).files) durable.set(id, content);
}

function recordTree(folder: string): void {
  const entries = listFolder(folder);
  recordFolder(folder, entries, looks++);
  for (const [name, { id, isFolder }] of Object.entries(entries)) {
    const path = join(folder, name);
    if (isFolder) recordTree(path);
    else recordFile(id, original.readFileSync(path), looks++);
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
