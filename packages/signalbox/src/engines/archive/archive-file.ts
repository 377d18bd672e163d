/** Reads an archive from a file. */
import { createHash, hash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { ArchiveError } from "./archive-error.ts";
import { readChunks, readRange } from "./archive-part.ts";
import { BLOCK_BYTES, decodeHeader, paddingOf, type TarEntry } from "./tar-header.ts";
import { MANIFEST, MANIFEST_HASH, type ManifestFile } from "./write-archive.ts";

interface PlacedEntry extends TarEntry {
  readonly offset: number;
}

/** The manifest of an archive is read into memory: it has about 150 bytes for each entry. */
const MAX_MANIFEST_BYTES = 1024 * 1024 * 1024;

export class ArchiveFile {
  readonly path: string;
  /** As it was written, with `files`. */
  readonly manifest: Readonly<Record<string, unknown>>;
  readonly #entries: ReadonlyMap<string, PlacedEntry>;
  readonly #files: readonly ManifestFile[];

  private constructor(path: string, entries: ReadonlyMap<string, PlacedEntry>, manifest: Manifest) {
    this.path = path;
    this.manifest = manifest;
    this.#entries = entries;
    this.#files = manifest.files;
  }

  /** Lists the entries and reads the manifest. Throws `ArchiveError` for a file that is no complete archive. */
  static async open(path: string): Promise<ArchiveFile> {
    const file = await open(path, "r").catch((cause: unknown) => {
      throw new ArchiveError(`cannot read ${path}: ${reason(cause)}`, { cause });
    });
    try {
      const entries = await listEntries(file, path);
      return new ArchiveFile(path, entries, await readManifest(path, entries));
    } finally {
      await file.close();
    }
  }

  get names(): readonly string[] {
    return this.#files.map(({ name }) => name);
  }

  /** Reads everything and compares it with the manifest. */
  async verify(): Promise<void> {
    const listed = new Set(this.names);
    for (const name of this.#entries.keys())
      if (!listed.has(name) && name !== MANIFEST && name !== MANIFEST_HASH)
        throw new ArchiveError(`${this.path} is damaged: the manifest does not list ${name}`);
    const archive = await open(this.path, "r");
    try {
      for (const file of this.#files) await this.#compare(archive, file);
    } finally {
      await archive.close();
    }
  }

  async #compare(archive: FileHandle, { name, size, sha256 }: ManifestFile): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry?.size !== size)
      throw new ArchiveError(`${this.path} is damaged: ${name} is missing or has another size`);
    const digest = createHash("sha256");
    for await (const chunk of readRange(archive, entry.offset, size)) digest.update(chunk);
    if (digest.digest("hex") !== sha256)
      throw new ArchiveError(`${this.path} is damaged: ${name} differs from its SHA-256`);
  }

  /** The content of an entry; empty if there is none. */
  read(name: string): AsyncGenerator<Buffer> {
    const { offset, size } = this.#entries.get(name) ?? { offset: 0, size: 0 };
    return readChunks(this.path, offset, size);
  }
}

interface Manifest {
  readonly [key: string]: unknown;
  readonly files: readonly ManifestFile[];
}

async function listEntries(file: FileHandle, path: string): Promise<Map<string, PlacedEntry>> {
  const entries = new Map<string, PlacedEntry>();
  const { size: total } = await file.stat();
  const header = Buffer.alloc(BLOCK_BYTES);
  for (let at = 0; ;) {
    const { bytesRead } = await file.read(header, 0, BLOCK_BYTES, at);
    if (bytesRead < BLOCK_BYTES) throw new ArchiveError(`${path} is not complete: it was cut off`);
    const entry = decode(header, path);
    if (entry === null) return entries;
    const offset = at + BLOCK_BYTES;
    at = offset + entry.size + paddingOf(entry.size);
    if (at > total) throw new ArchiveError(`${path} is not complete: it was cut off`);
    if (entries.has(entry.name)) throw new ArchiveError(`${path} is damaged: ${entry.name} is there twice`);
    entries.set(entry.name, { ...entry, offset });
  }
}

function decode(header: Buffer, path: string): TarEntry | null {
  try {
    return decodeHeader(header);
  } catch (cause) {
    throw new ArchiveError(`${path} is no backup, or damaged: ${reason(cause)}`, { cause });
  }
}

async function readManifest(path: string, entries: ReadonlyMap<string, PlacedEntry>): Promise<Manifest> {
  const [bytes, line] = await Promise.all([
    readWhole(path, entries.get(MANIFEST)),
    readWhole(path, entries.get(MANIFEST_HASH)),
  ]);
  if (bytes === null || line === null)
    throw new ArchiveError(`${path} is no complete backup: it has no manifest`);
  if (line.toString("latin1").split(" ")[0] !== hash("sha256", bytes))
    throw new ArchiveError(`${path} is damaged: the manifest differs from its SHA-256`);
  try {
    const manifest = JSON.parse(bytes.toString()) as Partial<Manifest>;
    if (!Array.isArray(manifest.files)) throw new Error("it lists no files");
    return manifest as Manifest;
  } catch (cause) {
    throw new ArchiveError(`the manifest of ${path} cannot be read: ${reason(cause)}`, { cause });
  }
}

async function readWhole(path: string, entry: PlacedEntry | undefined): Promise<Buffer | null> {
  if (entry === undefined || entry.size > MAX_MANIFEST_BYTES) return null;
  return Buffer.concat(await collect(readChunks(path, entry.offset, entry.size)));
}

async function collect(chunks: AsyncIterable<Buffer>): Promise<Buffer[]> {
  const all: Buffer[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
