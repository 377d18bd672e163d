/** Writing on a disk that accepts only a part, and the order in which a file becomes durable. */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { replaceFile, writeWhole } from "./index.ts";

let folder: string;
beforeEach(() => {
  folder = fs.mkdtempSync(join(tmpdir(), "signalbox-durable-"));
});
afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  fs.rmSync(folder, { recursive: true, force: true });
});

const FULL = Object.assign(new Error("no space left on device"), { code: "ENOSPC" });

/** Each write accepts three bytes; after `room` bytes the disk is full. */
function shrink(room: number): void {
  const { writeSync } = fs;
  let left = room;
  vi.spyOn(fs, "writeSync").mockImplementation(((
    fd: number,
    bytes: Uint8Array,
    at: number,
    length: number,
    position: number | null,
  ) => {
    if (left === 0) throw FULL;
    const count = Math.min(3, length, left);
    left -= count;
    return writeSync(fd, bytes, at, count, position);
  }) as typeof fs.writeSync);
  syncBuiltinESMExports();
}

it.each([
  [null, "0123456789"],
  [2, "xx0123456789"],
])("all bytes are written, however few the disk takes at a time (position %s)", (position, expected) => {
  const path = join(folder, "file");
  fs.writeFileSync(path, "xx");
  shrink(100);
  const file = fs.openSync(path, "r+");
  writeWhole(file, Buffer.from("0123456789"), position);
  fs.closeSync(file);
  expect(fs.readFileSync(path, "utf8")).toBe(expected);
});

it("what was written before the disk was full is reported, and the failure is thrown", () => {
  shrink(7);
  const file = fs.openSync(join(folder, "file"), "w");
  const parts: number[] = [];
  expect(() => writeWhole(file, Buffer.from("0123456789"), null, (length) => parts.push(length))).toThrow(
    FULL,
  );
  fs.closeSync(file);
  expect(parts).toEqual([3, 3, 1]);
});

it("a file is replaced as a whole: its content and then its name are durable before the function returns", () => {
  const path = join(folder, "secret");
  fs.writeFileSync(path, "old");
  const order: string[] = [];
  for (const name of ["fsyncSync", "renameSync"] as const) {
    const original = fs[name] as (...args: unknown[]) => void;
    vi.spyOn(fs, name).mockImplementation((...args: unknown[]) => {
      order.push(name === "renameSync" ? `rename over ${fs.readFileSync(path, "utf8")}` : "sync");
      original(...args);
    });
  }
  syncBuiltinESMExports();
  replaceFile(path, "new\n");
  expect(order).toEqual(["sync", "rename over old", "sync"]);
  expect([fs.readFileSync(path, "utf8"), fs.statSync(path).mode & 0o777, fs.readdirSync(folder)]).toEqual([
    "new\n",
    0o600,
    ["secret"],
  ]);
});

it("a full disk leaves the former content, and no draft", () => {
  const path = join(folder, "secret");
  fs.writeFileSync(path, "old");
  shrink(2);
  expect(() => replaceFile(path, "a new secret\n")).toThrow(FULL);
  expect([fs.readFileSync(path, "utf8"), fs.readdirSync(folder)]).toEqual(["old", ["secret"]]);
});
