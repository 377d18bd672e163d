/**
 * A file of the data folder with every reservation and every settled amount of money since the last write to the database, so that
 * `kill -9` loses none of them.
 *
 * Records are lines. They are collected and written together, at the latest when the turn of the event loop ends. A process that is killed after a
 * request was sent must have its reservation in the file, so whoever reserves writes at once, or sends when `whenWritten` calls back. Until a settled
 * amount is written, its reservation counts. What the kernel has accepted survives the end of the process; a power cut can lose what the
 * database has not received, at most about a second.
 *
 *   J <id>                         first line: which journal this is
 *   B <number> <JSON: [accountId, owner key, bucket]>
 *   R <call> <number>:<slot>:<end>:<amount> …     reserved
 *   S <call> <number>:<slot>:<end>:<amount> …     settled; the reservation is over
 *
 * Invariants:
 * 1. The database stores, in the same transaction as the amounts, how far the journal is contained in them (file number and byte).
 * 2. A line is valid only with its line feed; a damaged line is skipped.
 * 3. A file is deleted only when the database has everything of it and names a later file.
 */
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { writeWhole } from "../../engines/durable-file/index.ts";
import type { NamedBucket } from "./rule-buckets.ts";

export interface JournalPosition {
  readonly sequence: number;
  readonly byte: number;
}

/** An amount in a slot of a bucket. */
export interface SlotAmount {
  readonly bucket: NamedBucket;
  readonly slot: number;
  readonly end: number;
  readonly amount: number;
}

/** An amount that was found in the journal; its bucket is known by name only. */
export interface FoundAmount {
  readonly accountId: string;
  readonly owner: string;
  readonly bucket: string;
  readonly slot: number;
  readonly end: number;
  readonly amount: number;
}

export interface SpendJournalParts {
  readonly folder: string;
  /** A new id; used when the folder has no journal. */
  readonly newId: string;
  /** Called once when the file cannot be written, until it can be again. */
  readonly onError: (error: unknown) => void;
}

const FILE = /^spend-(\d{12})\.journal$/;
/** A new file is begun above this size; reading it takes some milliseconds. */
const MAX_FILE_BYTES = 4 * 1024 * 1024;
const NO_BYTES = Buffer.from("");

export class SpendJournal {
  readonly #parts: SpendJournalParts;
  #id: string;
  #file = -1;
  #sequence = 0;
  #bytes = 0;
  #numbers = 0;
  #pending = "";
  /** What a write that failed has left of earlier lines. */
  #rest = NO_BYTES;
  #isScheduled = false;
  #waiting: (() => void)[] = [];
  #hasFailed = false;
  /** Buckets that have a number in the current file. */
  #numbered: NamedBucket[] = [];

  constructor(parts: SpendJournalParts) {
    this.#parts = parts;
    this.#id = parts.newId;
    mkdirSync(parts.folder, { recursive: true, mode: 0o700 });
  }

  get id(): string {
    return this.#id;
  }

  get position(): JournalPosition {
    return { sequence: this.#sequence, byte: this.#bytes };
  }

  /** True when a new file is due: the current one is large, or could not be written. */
  get isFull(): boolean {
    return this.#bytes > MAX_FILE_BYTES || this.#hasFailed;
  }

  /** The id of the journal in the folder; null when there is none. */
  readId(): string | null {
    for (const { sequence } of this.#files()) {
      const id = /^J (\S+)\n/.exec(this.#read(sequence))?.[1];
      if (id !== undefined) return (this.#id = id);
    }
    return null;
  }

  /** What the files contain beyond the position that the database has. A reservation that was never settled counts as spent. */
  recover(known: JournalPosition | null): FoundAmount[] {
    const found: FoundAmount[] = [];
    const open = new Map<string, FoundAmount[]>();
    for (const { sequence } of this.#files()) {
      this.#sequence = Math.max(this.#sequence, sequence);
      if (known !== null && sequence < known.sequence) continue;
      const from = known !== null && sequence === known.sequence ? known.byte : 0;
      readLines(this.#read(sequence), (line, at, buckets) => {
        const [kind, call = ""] = line.split(" ", 2);
        if (kind === "R") open.set(call, toAmounts(line, buckets));
        else if (kind === "S") {
          open.delete(call);
          if (at >= from) found.push(...toAmounts(line, buckets));
        }
      });
    }
    for (const amounts of open.values()) found.push(...amounts);
    return found;
  }

  /** Begins a new file, with the reservations that are open. */
  begin(open: Iterable<readonly [call: number, amounts: readonly SlotAmount[]]>): void {
    this.flush();
    const file = openSync(this.#pathOf(this.#sequence + 1), "a", 0o600);
    if (this.#file !== -1) closeSync(this.#file);
    for (const bucket of this.#numbered) bucket.journalNumber = 0;
    this.#numbered = [];
    this.#numbers = 0;
    this.#bytes = 0;
    this.#sequence += 1;
    this.#file = file;
    this.#rest = NO_BYTES;
    this.#pending = `J ${this.#id}\n`;
    for (const [call, amounts] of open) this.#append("R", call, amounts);
    this.flush();
  }

  reserved(call: number, amounts: readonly SlotAmount[]): void {
    this.#append("R", call, amounts);
    this.#schedule();
  }

  /** Calls back, never at once, when the records that were collected before survive the end of the process; also if they could not be written, which is reported. */
  whenWritten(task: () => void): void {
    this.#waiting.push(task);
    this.#schedule();
  }

  settled(call: number, amounts: readonly SlotAmount[]): void {
    this.#append("S", call, amounts);
    this.#schedule();
  }

  /** Writes the collected records. */
  flush(): void {
    if ((this.#pending === "" && this.#rest.length === 0) || this.#file === -1) return;
    const lines = Buffer.from(this.#pending);
    const bytes = this.#rest.length === 0 ? lines : Buffer.concat([this.#rest, lines]);
    this.#pending = "";
    let written = 0;
    try {
      writeWhole(this.#file, bytes, null, (length) => (written += length));
      this.#rest = NO_BYTES;
      this.#hasFailed = false;
    } catch (error) {
      // The amounts are in memory and go to the database. A line that was written in part is continued: no line is written twice.
      this.#rest = shorten(bytes.subarray(written));
      if (!this.#hasFailed) this.#parts.onError(error);
      this.#hasFailed = true;
    }
    this.#bytes += written;
  }

  /** Deletes the files before the current one. */
  removeEarlier(): void {
    for (const { name, sequence } of this.#files()) {
      if (sequence < this.#sequence) rmSync(join(this.#parts.folder, name), { force: true });
    }
  }

  close(): void {
    this.flush();
    if (this.#file !== -1) closeSync(this.#file);
    this.#file = -1;
  }

  #append(kind: "R" | "S", call: number, amounts: readonly SlotAmount[]): void {
    let line = `${kind} ${call}`;
    for (const { bucket, slot, end, amount } of amounts) {
      line += ` ${this.#numberOf(bucket)}:${slot}:${end}:${amount}`;
    }
    this.#pending += `${line}\n`;
  }

  #numberOf(bucket: NamedBucket): number {
    if (bucket.journalNumber === 0) {
      bucket.journalNumber = ++this.#numbers;
      this.#numbered.push(bucket);
      const { accountId, key } = bucket.owner;
      this.#pending += `B ${bucket.journalNumber} ${JSON.stringify([accountId, key, bucket.name])}\n`;
    }
    return bucket.journalNumber;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.flush();
      const tasks = this.#waiting;
      this.#waiting = [];
      for (const task of tasks) {
        // One call that fails must not keep the others waiting.
        try {
          task();
        } catch (error) {
          this.#parts.onError(error);
        }
      }
    });
  }

  #files(): { readonly name: string; readonly sequence: number }[] {
    return readdirSync(this.#parts.folder)
      .map((name) => ({ name, sequence: Number(FILE.exec(name)?.[1] ?? Number.NaN) }))
      .filter(({ sequence }) => !Number.isNaN(sequence))
      .sort((a, b) => a.sequence - b.sequence);
  }

  #pathOf(sequence: number): string {
    return join(this.#parts.folder, `spend-${String(sequence).padStart(12, "0")}.journal`);
  }

  #read(sequence: number): string {
    // Bytes and characters are the same, because JSON of other characters is read byte by byte.
    return readFileSync(this.#pathOf(sequence), "latin1");
  }
}

/** Keeps the last lines. The first of them is damaged then, and is skipped. */
function shorten(lines: Buffer<ArrayBuffer>): Buffer<ArrayBuffer> {
  return lines.length <= MAX_FILE_BYTES
    ? lines
    : Buffer.concat([Buffer.from("\n"), lines.subarray(-MAX_FILE_BYTES)]);
}

type BucketNames = ReadonlyMap<string, readonly [accountId: string, owner: string, bucket: string]>;

function readLines(text: string, visit: (line: string, at: number, buckets: BucketNames) => void): void {
  const buckets = new Map<string, readonly [string, string, string]>();
  let at = 0;
  for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", at)) {
    const line = text.slice(at, end);
    if (line.startsWith("B ")) readBucket(line, buckets);
    else visit(line, at, buckets);
    at = end + 1;
  }
}

function readBucket(line: string, buckets: Map<string, readonly [string, string, string]>): void {
  const [, number = ""] = line.split(" ", 2);
  try {
    const json = Buffer.from(line.slice(number.length + 3), "latin1").toString("utf8");
    const names = JSON.parse(json) as unknown;
    if (Array.isArray(names) && names.length === 3)
      buckets.set(number, names as unknown as [string, string, string]);
  } catch {
    // A damaged line: the owner of its amounts is not known.
  }
}

function toAmounts(line: string, buckets: BucketNames): FoundAmount[] {
  return line
    .split(" ")
    .slice(2)
    .flatMap((part) => {
      const [number = "", slot, end, amount] = part.split(":");
      const names = buckets.get(number);
      const values = [slot, end, amount].map(Number);
      if (names === undefined || !values.every(Number.isSafeInteger)) return [];
      const [accountId, owner, bucket] = names;
      return [
        { accountId, owner, bucket, slot: values[0] ?? 0, end: values[1] ?? 0, amount: values[2] ?? 0 },
      ];
    });
}
