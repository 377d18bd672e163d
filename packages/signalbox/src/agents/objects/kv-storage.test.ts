import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { ListOptions } from "./kv-storage.ts";
import { openStorage, type TestStorage } from "./storage-fixture.ts";

let test: TestStorage;
beforeAll(async () => {
  test = await openStorage();
});
afterAll(() => test.close());

describe("key-value storage", () => {
  it("keeps what structured clone can copy", async () => {
    const { storage } = test;
    const value = {
      map: new Map([[1, new Set(["a"])]]),
      date: new Date(5),
      bytes: new Uint8Array([1]),
      n: 2n,
    };
    await storage.put("value", value);
    value.bytes[0] = 9;
    expect(await storage.get("value")).toEqual({ ...value, bytes: new Uint8Array([1]) });
    await expect(storage.put("f", () => 1)).rejects.toThrow("could not be cloned");
    await expect(storage.put("u", undefined)).rejects.toThrow("put() called with undefined value.");
  });

  it("takes several keys and entries at once", async () => {
    const { storage } = test;
    await storage.put({ b: 2, a: 1 });
    expect([...((await storage.get(["b", "missing", "a"])) as Map<string, number>)]).toEqual([
      ["a", 1],
      ["b", 2],
    ]);
    expect([await storage.delete(["a", "missing"]), await storage.delete("b")]).toEqual([1, true]);
    expect([await storage.delete("b"), await storage.get("b")]).toEqual([false, undefined]);
  });

  it("refuses options of a list that contradict each other", async () => {
    await expect(test.storage.list({ start: "a", startAfter: "a" })).rejects.toThrow(
      "both start and startAfter",
    );
    await expect(test.storage.list({ limit: 0 })).rejects.toThrow("List limit must be positive.");
  });
});

const key = fc.oneof(
  fc.stringMatching(/^[ab]{0,3}$/),
  fc.string({ unit: "binary", maxLength: 3 }).filter((text) => text.isWellFormed() && !text.includes("\0")),
);
const options = fc.record(
  { start: key, end: key, prefix: key, reverse: fc.boolean(), limit: fc.integer({ min: 1, max: 5 }) },
  { requiredKeys: [] },
) as fc.Arbitrary<ListOptions>;
const bytes = (text: string) => Buffer.from(text);

/** What `list` has to return. */
function model(keys: readonly string[], listed: ListOptions, isAfter: boolean): string[] {
  const found = keys
    .filter((one) => {
      if (listed.start !== undefined) {
        const order = Buffer.compare(bytes(one), bytes(listed.start));
        if (isAfter ? order <= 0 : order < 0) return false;
      }
      if (listed.end !== undefined && Buffer.compare(bytes(one), bytes(listed.end)) >= 0) return false;
      return one.startsWith(listed.prefix ?? "");
    })
    .toSorted((a, b) => Buffer.compare(bytes(a), bytes(b)));
  if (listed.reverse === true) found.reverse();
  return found.slice(0, listed.limit ?? found.length);
}

describe("list", () => {
  it("gives what a sorted list of keys gives, for all options", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(key, { maxLength: 12 }),
        options,
        fc.boolean(),
        async (keys, listed, isAfter) => {
          const { storage } = test;
          await storage.deleteAll();
          for (const one of keys) storage.kv.put(one, one);
          const { start, ...rest } = listed;
          const asked = start === undefined ? rest : { ...rest, [isAfter ? "startAfter" : "start"]: start };
          const found = await storage.list(asked);
          expect([...found.keys()]).toEqual(model(keys, listed, isAfter));
          expect([...found.values()]).toEqual([...found.keys()]);
          expect([...storage.kv.list(asked)]).toEqual([...found]);
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe("transaction", () => {
  it("is one over awaits, and is rolled back when it throws or is told to", async () => {
    const { runtime, storage } = test;
    const wait = () => new Promise((resolve) => setTimeout(resolve, 5));
    const run = <T>(body: () => Promise<T>) => runtime.run({ kind: "rpc", label: "", body });
    await storage.deleteAll();
    const kept = run(() =>
      storage.transaction(async (transaction) => {
        await transaction.put("a", 1);
        await wait();
        await transaction.put("b", 2);
        return "kept";
      }),
    );
    // Events that arrive in the meantime wait.
    const other = run(async () => [...(await storage.list()).keys()]);
    expect([await kept, await other]).toEqual(["kept", ["a", "b"]]);
    const failed = run(() =>
      storage.transaction(async (transaction) => {
        await transaction.delete("a");
        await wait();
        throw new TypeError("refused");
      }),
    );
    await expect(failed).rejects.toThrow(TypeError);
    const undone = run(() =>
      storage.transaction(async (transaction) => {
        await transaction.put("c", 1);
        transaction.rollback();
        return "undone";
      }),
    );
    expect(await undone).toBe("undone");
    expect([...(await storage.list()).keys()]).toEqual(["a", "b"]);
  });

  it("that cannot begin does not keep other events waiting", async () => {
    const { database, runtime, storage } = test;
    const run = <T>(body: () => Promise<T>) => runtime.run({ kind: "rpc", label: "", body });
    const { run: execute } = database;
    vi.spyOn(database, "run").mockImplementation((query) => {
      if (query.parts[0]?.startsWith("SAVEPOINT") === true) throw new Error("no savepoint");
      return execute.call(database, query);
    });
    const refused = run(() => storage.transaction(() => "never"));
    await expect(refused).rejects.toThrow("no savepoint");
    vi.restoreAllMocks();
    expect(await run(async () => "ran")).toBe("ran");
  });
});

describe("several values at once", () => {
  it("are stored together, or not at all if one of them cannot be copied", async () => {
    const { storage } = test;
    await storage.put("first", "before");
    await expect(storage.put({ first: 1, second: () => 2 })).rejects.toThrow("could not be cloned");
    await expect(
      storage.transaction(async (inner) => {
        await inner.put({ first: 1, second: Symbol("no") }).catch(() => undefined);
      }),
    ).resolves.toBeUndefined();
    expect(await storage.get(["first", "second"])).toEqual(new Map([["first", "before"]]));
  });
});

describe("deleteAll", () => {
  it("removes tables that refer to each other, to themselves and to tables that never existed", async () => {
    const { storage } = test;
    for (const statement of [
      "CREATE TABLE parent (id INTEGER PRIMARY KEY, up REFERENCES parent(id))",
      "CREATE TABLE child (id INTEGER PRIMARY KEY, up REFERENCES parent(id) DEFERRABLE INITIALLY DEFERRED)",
      "CREATE TABLE orphan (id INTEGER PRIMARY KEY, up REFERENCES nowhere(id))",
      "INSERT INTO parent VALUES (1, NULL), (2, 1)",
      "INSERT INTO child VALUES (1, 2)",
    ])
      storage.sql.exec(statement);
    await storage.put("key", 1);
    await storage.deleteAll();
    expect(storage.sql.exec("SELECT name FROM sqlite_master").toArray()).toEqual([]);
    expect(await storage.list()).toEqual(new Map());
  });
});
