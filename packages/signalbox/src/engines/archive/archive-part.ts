/** What becomes an entry of an archive. */
import { type FileHandle, open, rm, stat } from "node:fs/promises";

export interface ArchivePart {
  readonly name: string;
  readonly size: number;
  read(): AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
  /** Called when the entry was written, or is not wanted any more. */
  discard(): Promise<void>;
}

/** Bytes read at once. */
const CHUNK_BYTES = 256 * 1024;

export function bytesPart(name: string, bytes: Uint8Array): ArchivePart {
  return { name, size: bytes.length, read: () => [bytes], discard: () => Promise.resolve() };
}

/** A file that belongs to the archive alone: it does not change, and it is removed afterwards. */
export async function temporaryFilePart(name: string, path: string): Promise<ArchivePart> {
  const { size } = await stat(path);
  return { name, size, read: () => readChunks(path, 0, size), discard: () => rm(path, { force: true }) };
}

/** The bytes of a range of a file. Ends early if the file does. */
export async function* readChunks(path: string, start: number, length: number): AsyncGenerator<Buffer> {
  const file = await open(path, "r");
  try {
    yield* readRange(file, start, length);
  } finally {
    await file.close();
  }
}

export async function* readRange(file: FileHandle, start: number, length: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < length;) {
    const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, length - at));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, start + at);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
    at += bytesRead;
  }
}
