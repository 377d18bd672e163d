/** The index of local files on a disk that becomes full. */
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { InstancePaths } from "../instance-path.ts";
import { CacheFiles } from "./cache-files.ts";

vi.mock("node:fs", async (importOriginal) => {
  const actual = await importOriginal<typeof fs>();
  return { ...actual, writeSync: vi.fn(actual.writeSync) };
});
const writeSync = vi.mocked(fs.writeSync);

let folder = "";
let paths: InstancePaths;
beforeEach(() => {
  folder = fs.mkdtempSync(join(tmpdir(), "signalbox-cache-"));
  paths = new InstancePaths(join(folder, "agents"));
});
afterEach(() => {
  writeSync.mockClear();
  fs.rmSync(folder, { recursive: true, force: true });
});

const [first, second] = ["a", "b"].map((digit) => digit.repeat(40)) as [string, string];
const create = (key: string) => {
  paths.createFolder(paths.of(key));
  fs.writeFileSync(paths.of(key), "content");
};
const entry = { id: 1, store: "0", seq: 2, mark: 3 };

function fill(): CacheFiles {
  const files = new CacheFiles(paths, 1e9);
  for (const key of [first, second]) {
    create(key);
    files.closed(key, entry);
  }
  return files;
}

it("finds closed files after a restart, and not one that was open", () => {
  const files = fill();
  files.open(first);
  files.close();
  const again = new CacheFiles(paths, 1e9);
  expect([again.find(first), again.find(second)]).toEqual([undefined, { ...entry, bytes: 7 }]);
  expect([fs.existsSync(paths.of(first)), fs.existsSync(paths.of(second))]).toEqual([false, true]);
  again.close();
});

const refuse = () => {
  throw Object.assign(new Error("no space"), { code: "ENOSPC" });
};

it.each([
  ["a part of a line is written", [(fd: number) => fs.appendFileSync(fd, "c".repeat(20)) ?? 20, refuse]],
  ["nothing is written", [refuse]],
])("trusts no entry after a full disk: %s", (_name, writes) => {
  const files = fill();
  create("c".repeat(40));
  for (const write of writes) writeSync.mockImplementationOnce(write);
  files.closed("c".repeat(40), entry);
  // This one is open when the process is killed: its entry must not be found, whatever was before its line.
  files.open(second);
  files.close();
  const again = new CacheFiles(paths, 1e9);
  expect([again.find(first), again.find(second)]).toEqual([undefined, undefined]);
  expect(fs.existsSync(paths.of(second))).toBe(false);
  again.close();
});

it("removes files that a killed process had created and not closed", () => {
  const files = fill();
  create("c".repeat(40));
  fs.mkdirSync(join(paths.root, "spare-wal"));
  files.close();
  const again = new CacheFiles(paths, 1e9);
  expect(fs.existsSync(paths.of("c".repeat(40)))).toBe(false);
  expect([again.find(second)?.seq, fs.existsSync(paths.of(second))]).toEqual([2, true]);
  again.close();
});
