import { describe, expect, it } from "vitest";
import { type InstanceDatabase, SqlError } from "../../engines/instance-store/instance-store.ts";
import type { InstanceReader } from "../instance/inspection.ts";
import { SqlConsole } from "./sql-console.ts";

const REF = { account: "default", agent: "a", name: "n" };

/** A console whose queries the test ends. */
function createConsole(bytes = 4096) {
  let copies = 0;
  const ends: ((error?: Error) => void)[] = [];
  const database = {
    get: () => ({ bytes }),
    snapshot: () => {
      copies += 1;
      return new Uint8Array();
    },
  } as unknown as InstanceDatabase;
  const directory = {
    read: async <T>(_ref: unknown, _label: string, work: (reader: InstanceReader) => T) =>
      work({ database } as InstanceReader),
  };
  const store = {
    queryReadOnly: () =>
      new Promise<{ rows: []; isCut: boolean }>((resolve, reject) =>
        ends.push((error) => (error === undefined ? resolve({ rows: [], isCut: false }) : reject(error))),
      ),
  };
  return { sqlConsole: new SqlConsole(directory, store), ends, copies: () => copies };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe("queries on copies of instances", () => {
  it("run two at a time; eight wait without a copy, and another one is refused with a retry-after", async () => {
    const { sqlConsole, ends, copies } = createConsole();
    const queries = Promise.allSettled(Array.from({ length: 10 }, () => sqlConsole.query(REF, "SELECT 1")));
    await settle();
    expect([ends.length, copies()]).toEqual([2, 2]);
    await expect(sqlConsole.query(REF, "SELECT 1")).rejects.toMatchObject({
      id: "overloaded",
      headers: { "retry-after": "5" },
    });
    for (let ended = 0; ended < 10; ended += 1) {
      ends[ended]?.(ended % 2 === 0 ? undefined : new SqlError("no such table: t", "SELECT 1"));
      await settle();
      expect(ends.length).toBe(Math.min(10, ended + 3));
    }
    expect((await queries).map(({ status }) => status)).toEqual(
      Array.from({ length: 10 }, (_, i) => (i % 2 === 0 ? "fulfilled" : "rejected")),
    );
    // All places are free again.
    void sqlConsole.query(REF, "SELECT 1");
    await settle();
    expect(ends.length).toBe(11);
  });

  it("are refused for a database that is too large before it is copied, and free their place", async () => {
    const { sqlConsole, copies } = createConsole(64 * 1024 * 1024 + 1);
    for (let i = 0; i < 5; i += 1)
      await expect(sqlConsole.query(REF, "SELECT 1")).rejects.toMatchObject({ id: "agent_sql" });
    expect(copies()).toBe(0);
  });
});
