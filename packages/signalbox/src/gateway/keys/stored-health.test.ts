import { expect, it } from "vitest";
import type { SqlQuery } from "../../core/sql.ts";
import type { PoolKey } from "./provider-key-pool.ts";
import { StoredHealth, type StoredHealthParts } from "./stored-health.ts";

it("keeps the uses that could not be written, and writes them later", async () => {
  const written: unknown[] = [];
  let isFailing = true;
  const database = {
    run: (query: SqlQuery) => {
      if (isFailing && written.length === 1) return Promise.reject(new Error("disk is full"));
      written.push(query.values);
      return Promise.resolve();
    },
  };
  const health = new StoredHealth({ database, onError: () => undefined } as unknown as StoredHealthParts);
  const keyOf = (id: string) =>
    ({ key: { id, secretId: null }, health: { usedAt: 7 } }) as unknown as PoolKey;
  const outcome = { status: 200, model: "m", retryAfterMs: null };
  for (const id of ["a", "b", "c"]) health.store(keyOf(id), "used", outcome, 0);
  await expect(health.stop()).rejects.toThrow("disk is full");
  isFailing = false;
  await health.stop();
  expect(written).toHaveLength(3);
  expect(written.map((values) => (values as unknown[]).includes("a"))).toEqual([true, false, false]);
});
