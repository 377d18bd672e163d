import { afterAll, beforeAll, expect, it } from "vitest";
import { openTestPostgres, type TestPostgres } from "../../../../../test/support/test-postgres.ts";
import { joinSql, rawSql, sql } from "../../core/sql.ts";
import { PostgresDatabase } from "./postgres-database.ts";

let server: TestPostgres;
let database: PostgresDatabase;
beforeAll(async () => {
  server = await openTestPostgres();
  database = await PostgresDatabase.open(
    server.url,
    (error) => {
      throw error;
    },
    { maxWaitMs: 1000 },
  );
});
afterAll(async () => {
  await database.close();
  await server.drop();
});

it("returns blobs of any size and their labels, and no row of an empty result", async () => {
  const sizes = [0, 1, 70_000, 3_000_000];
  const blobs = await database.readBlobs(
    sql`SELECT n::text AS label, decode(repeat('00ff0a5c', n / 4) || substr('00ff0a', 1, n % 4 * 2), 'hex') AS bytes
        FROM unnest(ARRAY[${joinSql(
          sizes.map((size) => sql`${size}::int`),
          ", ",
        )}]) AS n`,
  );
  expect(blobs.map(({ label }) => Number(label))).toEqual(sizes);
  for (const { label, bytes } of blobs) {
    const expected = Buffer.alloc(Number(label), Buffer.from([0, 255, 10, 92]));
    expect(Buffer.from(bytes).equals(expected)).toBe(true);
  }
  expect(await database.readBlobs(sql`SELECT 'a' AS label, ''::bytea AS bytes WHERE ${1} = 2`)).toEqual([]);
});

it("values stay values, whatever is in them", async () => {
  const texts = ["'", "\\", "\\'; SELECT 1; --", "$1", "ünïcode\n\t\u2028", "E'", '"', ""];
  for (const text of texts) {
    const [row] = await database.readBlobs(sql`SELECT ${text}::text AS label, ''::bytea AS bytes`);
    expect(row?.label).toBe(text);
  }
  const bytes = new Uint8Array([0, 39, 92, 255]);
  const [row] = await database.readBlobs(
    sql`SELECT (5 -${-3})::text || (5 -${-7n})::text || coalesce(${null}, '!') AS label, ${bytes} AS bytes`,
  );
  expect(row).toEqual({ label: "812!", bytes });
  await expect(database.readBlobs(sql`SELECT ${"a\0b"} AS label, ''::bytea AS bytes`)).rejects.toThrow("NUL");
  await expect(database.readBlobs(sql`SELECT ${Number.NaN} AS label, ''::bytea`)).rejects.toThrow(
    "no number",
  );
});

it("fails with its statement, in the middle of the rows too, and the next read succeeds", async () => {
  await expect(database.readBlobs(rawSql("SELECT nothing AS label, '' AS bytes"))).rejects.toThrow("nothing");
  await expect(
    database.readBlobs(
      rawSql(
        "SELECT (1 / (50000 - n))::text AS label, '\\x00'::bytea AS bytes FROM generate_series(1, 60000) n",
      ),
    ),
  ).rejects.toThrow("division by zero");
  await expect(database.readBlobs(rawSql("SELECT 'a' AS label, NULL::bytea AS bytes"))).rejects.toThrow(
    "row",
  );
  await expect(database.readBlobs(rawSql("SELECT 'only a label' AS label"))).rejects.toThrow("row");
  expect(await database.readBlobs(rawSql("SELECT 'a' AS label, '\\x01'::bytea AS bytes"))).toHaveLength(1);
});

it("waits for a server that is restarted, and fails if it stays away", async () => {
  await server.stop("fast");
  const read = database.readBlobs(rawSql("SELECT 'a' AS label, '\\x01'::bytea AS bytes"));
  await expect(read).rejects.toMatchObject({ id: "storage_unavailable" });
  await server.start();
  await expect
    .poll(() => database.readBlobs(rawSql("SELECT 'a' AS label, '\\x01'::bytea AS bytes")).catch(() => []))
    .toHaveLength(1);
});
