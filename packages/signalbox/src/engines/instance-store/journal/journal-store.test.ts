import { hash } from "node:crypto";
import fs from "node:fs";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { rawSql, sql } from "../../../core/sql.ts";
import { InstanceFiles } from "./journal-store.ts";

let folder: string;
let files: InstanceFiles;
let stalls: Error[];
beforeEach(async () => {
  stalls = [];
  folder = await mkdtemp(join(tmpdir(), "signalbox-files-"));
  files = new InstanceFiles(join(folder, "agents"), {
    segmentBytes: 2 ** 20,
    onFailure: fail,
    onStall: (error) => stalls.push(error),
  });
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function fail(error: Error): never {
  throw error;
}

const REF = { account: "default", agent: "a", name: "n" };
const onDisk = async () =>
  (await readdir(join(folder, "agents"), { recursive: true }))
    .filter((name) => name.includes(".db"))
    .toSorted();

describe("an instance's file", () => {
  it("is created once, holds what was committed, and needs no log when it is closed", async () => {
    const first = await files.open(REF);
    expect(first.isNew).toBe(true);
    first.begin();
    first.run(rawSql("CREATE TABLE t (x INTEGER)"));
    first.run(sql`INSERT INTO t VALUES (${1})`);
    first.commit();
    await first.sync();
    first.begin();
    first.run(sql`INSERT INTO t VALUES (${2})`);
    first.rollback();
    await first.close();
    expect(await onDisk()).toHaveLength(1);
    const second = await files.open(REF);
    expect([second.isNew, second.all(sql`SELECT x FROM t`)]).toEqual([
      false,
      [expect.objectContaining({ x: 1 })],
    ]);
    await second.close();
  });

  it("keeps what was committed but never synced over an orderly close", async () => {
    const first = await files.open(REF);
    first.begin();
    first.run(rawSql("CREATE TABLE t (x INTEGER)"));
    first.commit();
    await first.close();
    const second = await files.open(REF);
    expect(second.all(rawSql("SELECT * FROM t"))).toEqual([]);
    await second.close();
  });

  it("never meets the log that a killed process left, its own or a predecessor's", async () => {
    const first = await files.open(REF);
    await first.close();
    const [name = ""] = await onDisk();
    const path = join(folder, "agents", name);
    await writeFile(`${path}-wal`, "left over");
    const next = new InstanceFiles(join(folder, "agents"), {
      segmentBytes: 2 ** 20,
      onFailure: fail,
      onStall: fail,
    });
    const second = await next.open(REF);
    expect(second.get(sql`SELECT count(*) AS n FROM _signalbox_meta`)).toMatchObject({ n: 0 });
    await second.close();
    await next.close();
  });

  it("that another program writes to is left alone", async () => {
    const first = await files.open(REF);
    await first.close();
    const [name = ""] = await onDisk();
    await writeFile(join(folder, "agents", `${name}-wal`), "of another program");
    await expect(files.open(REF)).rejects.toThrow("another program");
    expect(await readFile(join(folder, "agents", `${name}-wal`), "utf8")).toBe("of another program");
  });

  it("is held by one opener at a time", async () => {
    const first = await files.open(REF);
    await expect(files.open(REF)).rejects.toThrow("is open already");
    await first.close();
  });

  it("of a newer version is refused and not touched", async () => {
    const first = await files.open(REF);
    first.run(rawSql("PRAGMA user_version = 999"));
    await first.close();
    await expect(files.open(REF)).rejects.toThrow("has schema 999");
  });

  it("starts with what its class brings, once: one that is there is opened as it is", async () => {
    const schema = "CREATE TABLE own (x INTEGER);";
    const first = await files.open(REF, schema);
    first.run(sql`INSERT INTO own VALUES (${1})`);
    await first.close();
    const second = await files.open(REF, "CREATE TABLE later (x INTEGER);");
    expect(second.all(sql`SELECT name FROM sqlite_schema WHERE name IN ('own', 'later')`)).toEqual([
      expect.objectContaining({ name: "own" }),
    ]);
    expect(second.get(sql`SELECT x FROM own`)).toMatchObject({ x: 1 });
    await second.close();
    const other = await files.open({ account: "default", agent: "a", name: "other" });
    expect(other.get(sql`SELECT 1 FROM sqlite_schema WHERE name = 'own'`)).toBeUndefined();
    await other.close();
  });

  it("that the disk did not take is gone, and the next one who asks creates it", async () => {
    const { writeSync } = fs;
    // No test can fill a disk of the machine it runs on.
    fs.writeSync = ((...args: Parameters<typeof writeSync>) => {
      if (Buffer.from(args[1] as unknown as Uint8Array).toString("latin1", 0, 15) === "SQLite format 3")
        throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
      return writeSync(...args);
    }) as typeof writeSync;
    syncBuiltinESMExports();
    try {
      await expect(files.open(REF)).rejects.toThrow("the disk is full");
      await expect(files.open(REF)).rejects.toThrow("the disk is full");
      expect(stalls).toHaveLength(1);
    } finally {
      fs.writeSync = writeSync;
      syncBuiltinESMExports();
    }
    expect(await onDisk()).toEqual([]);
    await expect.poll(() => files.problem).toBeNull();
    const database = await files.open(REF);
    expect(database.isNew).toBe(true);
    await database.close();
    const [name = ""] = await onDisk();
    expect((await stat(join(folder, "agents", name))).mode & 0o777).toBe(0o600);
  });

  it("is not created when what its class brings is no SQL", async () => {
    await expect(files.open(REF, "CREATE TABEL x (y)")).rejects.toThrow("syntax error");
    expect(await onDisk()).toEqual([]);
    const database = await files.open(REF);
    expect(database.isNew).toBe(true);
    await database.close();
  });

  it("can be copied while it is open, and the copy queried", async () => {
    const database = await files.open(REF);
    database.begin();
    database.run(rawSql("CREATE TABLE t (x INTEGER)"));
    database.run(sql`INSERT INTO t VALUES (${41})`);
    database.commit();
    const result = await files.queryReadOnly(database.snapshot(), "SELECT x + 1 AS y FROM t", {
      maxBytes: 1024,
      maxMemoryBytes: 512 * 1024 * 1024,
      maxRows: 10,
      timeoutMs: 20_000,
    });
    expect(result).toEqual({ rows: [{ y: 42 }], isCut: false });
    await database.close();
  });

  it("is another one for each account, and that of the account default has the name it had before there were others", async () => {
    const names: string[] = [];
    for (const account of ["default", "acme", "other"]) {
      const database = await files.open({ ...REF, account });
      expect(database.isNew).toBe(true);
      await database.close();
      names.push(...(await onDisk()).filter((name) => !names.includes(name)));
    }
    expect(names).toHaveLength(3);
    const former = hash("sha256", `${REF.agent}\0${REF.name}`).slice(0, 40);
    expect(names[0]).toBe(join(former.slice(0, 2), `${former}.db`));
    // An account and an agent never make up another account's agent.
    const [one, two] = await Promise.all([
      files.open({ account: "x", agent: "y", name: "z" }),
      files.open({ account: "default", agent: "x", name: "y\0z" }),
    ]);
    await Promise.all([one.close(), two.close()]);
  });

  it("removing what is not there is no error", async () => {
    await expect(files.destroy({ account: "default", agent: "a", name: "never" })).resolves.toBeUndefined();
  });
});
