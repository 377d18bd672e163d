/** Writes parts as one stream of bytes, with a manifest at the end. */
import { createHash, hash } from "node:crypto";
import type { ArchivePart } from "./archive-part.ts";
import { bytesPart } from "./archive-part.ts";
import { encodeHeader, END, paddingOf } from "./tar-header.ts";

export interface ManifestFile {
  readonly name: string;
  readonly size: number;
  readonly sha256: string;
}

export const MANIFEST = "manifest.json";
export const MANIFEST_HASH = "manifest.sha256";

/** Smaller pieces are joined: a hundred thousand small entries have three pieces each, and each piece would be a write to the socket or the file. */
const PIECE_BYTES = 64 * 1024;

/** `describe` returns the manifest without its list of files; it is called after the last part. */
export function writeArchive(
  parts: AsyncIterable<ArchivePart>,
  describe: () => object,
  createdAt: number,
): AsyncGenerator<Uint8Array> {
  return joined(piecesOf(parts, describe, createdAt));
}

async function* joined(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let waiting: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of pieces) {
    waiting.push(piece);
    bytes += piece.length;
    if (bytes < PIECE_BYTES) continue;
    yield Buffer.concat(waiting);
    waiting = [];
    bytes = 0;
  }
  yield Buffer.concat(waiting);
}

async function* piecesOf(
  parts: AsyncIterable<ArchivePart>,
  describe: () => object,
  createdAt: number,
): AsyncGenerator<Uint8Array> {
  const files: ManifestFile[] = [];
  for await (const part of parts) {
    try {
      const digest = createHash("sha256");
      yield* writeEntry(part, createdAt, (chunk) => digest.update(chunk));
      files.push({ name: part.name, size: part.size, sha256: digest.digest("hex") });
    } finally {
      await part.discard();
    }
  }
  const manifest = Buffer.from(`${JSON.stringify({ ...describe(), files })}\n`);
  yield* writeEntry(bytesPart(MANIFEST, manifest), createdAt);
  const line = Buffer.from(`${hash("sha256", manifest)}  ${MANIFEST}\n`);
  yield* writeEntry(bytesPart(MANIFEST_HASH, line), createdAt);
  yield END;
}

async function* writeEntry(
  part: ArchivePart,
  createdAt: number,
  visit: (chunk: Uint8Array) => void = () => undefined,
): AsyncGenerator<Uint8Array> {
  yield encodeHeader(part, createdAt);
  let written = 0;
  for await (const chunk of part.read()) {
    visit(chunk);
    written += chunk.length;
    yield chunk;
  }
  if (written !== part.size) throw new Error(`${part.name} has ${written} instead of ${part.size} bytes`);
  const padding = paddingOf(part.size);
  if (padding > 0) yield Buffer.alloc(padding);
}
