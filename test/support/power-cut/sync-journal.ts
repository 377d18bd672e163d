/**
 * The durable content of a server's data folder, as a file that survives the process: appended by the recorder inside
 * the process, read by the test after the kill. An incomplete record at the end is ignored.
 *
 * Record: length of the head (4 bytes), head as JSON, `byteCount` bytes.
 */
import { readFileSync, writeSync } from "node:fs";

/** Identifies a file during its existence: an inode number is reused, but not within the same nanosecond. */
export type FileId = string;

export interface FolderEntry {
  readonly id: FileId;
  readonly isFolder: boolean;
}

export type JournalRecord =
  /** The file is resized to `size`, then `bytes` are written at `offset`. */
  | {
      readonly kind: "file";
      readonly id: FileId;
      readonly offset: number;
      readonly size: number;
      readonly bytes: Buffer;
    }
  /** The folder has exactly these entries; its path is relative to the data folder. */
  | {
      readonly kind: "folder";
      readonly path: string;
      readonly entries: Readonly<Record<string, FolderEntry>>;
    };

export function appendRecord(fd: number, record: JournalRecord): void {
  const bytes = record.kind === "file" ? record.bytes : Buffer.alloc(0);
  const head = Buffer.from(JSON.stringify({ ...record, bytes: undefined, byteCount: bytes.length }));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(head.length);
  // One write: if the process is killed, the kernel completes the write or never begins it.
  writeSync(fd, Buffer.concat([length, head, bytes]));
}

/** The durable content. */
export interface DurableDisk {
  readonly files: ReadonlyMap<FileId, Buffer>;
  readonly folders: ReadonlyMap<string, ReadonlyMap<string, FolderEntry>>;
}

export function readJournal(path: string): DurableDisk {
  const files = new Map<FileId, Buffer>();
  const folders = new Map<string, ReadonlyMap<string, FolderEntry>>();
  for (const record of records(readFileSync(path))) {
    if (record.kind === "folder") folders.set(record.path, new Map(Object.entries(record.entries)));
    else files.set(record.id, applyPatch(files.get(record.id) ?? Buffer.alloc(0), record));
  }
  return { files, folders };
}

export function applyPatch(
  content: Buffer,
  { offset, size, bytes }: { readonly offset: number; readonly size: number; readonly bytes: Buffer },
): Buffer {
  const next = Buffer.alloc(size);
  content.copy(next, 0, 0, Math.min(content.length, size));
  bytes.copy(next, offset);
  return next;
}

function* records(journal: Buffer): Generator<JournalRecord> {
  let at = 0;
  while (at + 4 <= journal.length) {
    const headEnd = at + 4 + journal.readUInt32BE(at);
    if (headEnd > journal.length) return;
    const { byteCount, ...head } = JSON.parse(
      journal.subarray(at + 4, headEnd).toString(),
    ) as JournalRecord & {
      byteCount: number;
    };
    if (headEnd + byteCount > journal.length) return;
    yield { ...head, bytes: journal.subarray(headEnd, headEnd + byteCount) } as JournalRecord;
    at = headEnd + byteCount;
  }
}
