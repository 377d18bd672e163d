import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ArchiveError, ArchiveFile, bytesPart, temporaryFilePart, writeArchive } from "./index.ts";
import { decodeHeader, encodeHeader } from "./tar-header.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-archive-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const CONTENT = { "a.txt": "hello", "b/c.db": "x".repeat(100_000), "b/empty": "" };

async function write(name = "x.tar"): Promise<string> {
  async function* parts() {
    const staged = join(folder, "staged");
    writeFileSync(staged, CONTENT["b/c.db"]);
    yield bytesPart("a.txt", Buffer.from(CONTENT["a.txt"]));
    yield await temporaryFilePart("b/c.db", staged);
    yield bytesPart("b/empty", Buffer.alloc(0));
  }
  const path = join(folder, name);
  const archive = writeArchive(parts(), () => ({ format: 1 }), 1_000_000_000_000);
  writeFileSync(path, Buffer.concat(await collect(archive)));
  return path;
}

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
}

async function readAll(archive: ArchiveFile, name: string): Promise<string> {
  return Buffer.concat(await collect(archive.read(name))).toString();
}

describe("an archive", () => {
  it("returns what was written, and its manifest", async () => {
    const archive = await ArchiveFile.open(await write());
    await archive.verify();
    expect(archive.names).toEqual(Object.keys(CONTENT));
    expect(archive.manifest).toMatchObject({ format: 1 });
    for (const [name, text] of Object.entries(CONTENT)) expect(await readAll(archive, name)).toBe(text);
  });

  it("can be read by tar", async () => {
    const path = await write();
    const listed = execFileSync("tar", ["-tf", path], { encoding: "utf8" });
    expect(listed.trim().split("\n")).toEqual([...Object.keys(CONTENT), "manifest.json", "manifest.sha256"]);
    execFileSync("tar", ["-xf", path, "-C", folder, "b/c.db"]);
    expect(readFileSync(join(folder, "b/c.db"), "utf8")).toBe(CONTENT["b/c.db"]);
  });

  it("has few pieces for many small entries", async () => {
    async function* parts() {
      for (let i = 0; i < 500; i++) yield bytesPart(`n/${i}`, Buffer.alloc(700, i));
    }
    const pieces = await collect(writeArchive(parts(), () => ({}), 0));
    expect(pieces.length).toBeLessThan(20);
    const path = join(folder, "many.tar");
    writeFileSync(path, Buffer.concat(pieces));
    const archive = await ArchiveFile.open(path);
    await archive.verify();
    expect(archive.names).toHaveLength(500);
    expect(await readAll(archive, "n/77")).toBe("M".repeat(700));
  });

  it("is refused wherever it was cut off", async () => {
    const path = await write("cut.tar");
    const bytes = readFileSync(path);
    for (const length of [0, 100, 512, 1000, bytes.length / 2, bytes.length - 2048, bytes.length - 1024]) {
      writeFileSync(path, bytes);
      truncateSync(path, Math.floor(length));
      await expect(ArchiveFile.open(path), `cut at ${length}`).rejects.toBeInstanceOf(ArchiveError);
    }
  });

  it("is refused wherever a bit was changed in it", async () => {
    const path = await write("changed.tar");
    const bytes = readFileSync(path);
    // Fields of a header that are not used (owner, time) are covered by its checksum; padding means nothing.
    const meaningful = [
      5,
      130,
      512,
      514,
      1024 + 3,
      1536 + 50_000,
      bytes.length - 1024 - 512,
      bytes.length - 4000,
    ];
    for (const at of meaningful) {
      const changed = Buffer.from(bytes);
      changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
      writeFileSync(path, changed);
      const opened = async () => (await ArchiveFile.open(path)).verify();
      await expect(opened(), `changed at ${at}`).rejects.toBeInstanceOf(ArchiveError);
    }
  });

  it.each(["../x", "/etc/passwd", "a/../b", ".hidden", "a//b", "a\\b", "x".repeat(101)])(
    "has no entry %s",
    (name) => {
      expect(() => encodeHeader({ name, size: 0 }, 0)).toThrow(/cannot be the name/);
    },
  );

  it("keeps names and sizes of any magnitude", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z0-9]{1,40}\.db$/), fc.maxSafeNat(), (name, size) => {
        expect(decodeHeader(encodeHeader({ name, size }, 0))).toEqual({ name, size });
      }),
    );
  });
});
