import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { rawSql } from "../../core/sql.ts";
import { SqliteConnection } from "../sqlite-file/index.ts";
import { type KeptFile, KeptReads } from "./kept-reads.ts";

let folder: string;
let writer: SqliteConnection;
let connections: SqliteConnection[];
let kept: KeptReads;
let reads: number;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-kept-"));
  writer = SqliteConnection.open(join(folder, "day.db"));
  writer.exec("PRAGMA journal_mode = WAL; CREATE TABLE call (id INTEGER)");
  connections = [writer];
  kept = new KeptReads(10);
  reads = 0;
});
afterEach(() => {
  for (const connection of connections) connection.close();
  rmSync(folder, { recursive: true, force: true });
});

function open(number: number): KeptFile {
  const connection = SqliteConnection.open(join(folder, "day.db"), { readOnly: true });
  connections.push(connection);
  return { connection, number };
}

/** The number of rows of the table, as a value of so many rows; null for one that is not kept. */
function count(file: KeptFile, name: string, rows: number | null = 1): number {
  return kept.read(file, [name], () => {
    reads += 1;
    const found = file.connection.get<{ n: number }>(rawSql("SELECT count(*) AS n FROM call"));
    return { value: found?.n ?? -1, rows };
  });
}

it("reads a file once until another connection has changed it", () => {
  const file = open(1);
  expect([count(file, "all"), count(file, "all")]).toEqual([0, 0]);
  expect(reads).toBe(1);
  writer.exec("INSERT INTO call VALUES (1)");
  expect([count(file, "all"), count(file, "all")]).toEqual([1, 1]);
  expect(reads).toBe(2);
});

it("does not give a file what was read from another one, or before the file was opened again", () => {
  count(open(1), "all");
  const file = open(2);
  count(file, "all");
  expect(reads).toBe(2);
  kept.forget(file);
  expect(kept.rows).toBe(2);
  count(file, "all");
  expect(reads).toBe(3);
});

it("a value that is not enough is read again, and replaces the former one", () => {
  const file = open(1);
  const first = (limit: number) =>
    kept.read(
      file,
      ["first"],
      () => ({ value: limit, rows: limit }),
      (known) => known >= limit,
    );
  expect([first(2), first(4), first(3)]).toEqual([2, 4, 4]);
  expect(kept.rows).toBe(5);
});

it("keeps at most so many rows, and drops what was used least recently", () => {
  const file = open(1);
  for (const name of ["a", "b", "a", "c"]) count(file, name, 3);
  expect(reads).toBe(3);
  expect(kept.rows).toBe(8);
  count(file, "a", 3);
  expect(reads).toBe(3);
  count(file, "b", 3);
  expect(reads).toBe(4);
});

it("the number of rows stays that of the values, whatever is replaced, dropped and forgotten", () => {
  const files = [open(1), open(2)];
  for (let i = 0; i < 500; i++) {
    const file = files[i % 2] as KeptFile;
    if (i % 7 === 0) writer.exec("INSERT INTO call VALUES (1)");
    count(file, `q${i % 5}`, i % 4);
    if (i % 31 === 0) kept.forget(file);
    expect(kept.rows).toBeLessThanOrEqual(10);
  }
  for (const file of files) kept.forget(file);
  expect(kept.rows).toBe(0);
});

it("counts the text of a query, so that many long filters do not take more memory than many rows", () => {
  const file = open(1);
  for (let i = 0; i < 20; i++) count(file, `${i} ${"x".repeat(380)}`, 0);
  expect(kept.rows).toBe(8);
});

it("keeps neither a value larger than all may be nor one that says so", () => {
  const file = open(1);
  for (let i = 0; i < 2; i++) count(file, "large", 10);
  for (let i = 0; i < 2; i++) count(file, "never", null);
  expect(reads).toBe(4);
  expect(kept.rows).toBe(0);
});
