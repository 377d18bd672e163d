import { expect, it } from "vitest";
import { SignalboxError } from "@signalbox/protocol";
import { ENGINES, openSqlite } from "../../../../test/support/engines.ts";
import { systemClock } from "../core/clock.ts";
import type { Database } from "../database/database.ts";
import { ResourceEvents } from "../contracts/resource-events.ts";
import { sql } from "../core/sql.ts";
import { tokenKey, Tokens } from "./tokens.ts";

it.each(ENGINES)(
  "refuses a revoked token at once if the database cannot be written, and deletes its row with the next attempt (%s)",
  async (_engine, open) => {
    const { database, drop } = await open();
    await database.run(sql`INSERT INTO account (id, name, created_at) VALUES ('a', 'a', 0)`);
    let isFull = false;
    const failing: Database = {
      engine: database.engine,
      problem: null,
      all: (query) => database.all(query),
      scan: (query, turn) => database.scan(query, turn),
      get: (query) => database.get(query),
      run: (query) =>
        isFull ? Promise.reject(new SignalboxError("storage_unavailable")) : database.run(query),
      transaction: (work) =>
        isFull ? Promise.reject(new SignalboxError("storage_unavailable")) : database.transaction(work),
      close: () => Promise.resolve(),
    };
    let tokens = new Tokens(failing, systemClock, new ResourceEvents());
    const wanted = { name: "t", permissions: ["tags.read"] as const };
    const { token, text } = await tokens.create({ kind: "root" }, "a", wanted);
    let hasEnded = false;
    tokens.ends.watch([{ key: tokenKey(token.id), expiresAt: null }], () => (hasEnded = true));
    expect(tokens.authenticate(text.reveal())?.id).toBe(token.id);

    isFull = true;
    await expect(tokens.revoke("a", token.id)).rejects.toMatchObject({ id: "storage_unavailable" });
    expect([tokens.authenticate(text.reveal()), hasEnded]).toEqual([undefined, true]);

    isFull = false;
    // No later read of the rows brings it back.
    await tokens.load();
    expect(tokens.authenticate(text.reveal())).toBe(undefined);

    // A restart before the second attempt: the row still exists.
    tokens = new Tokens(failing, systemClock, new ResourceEvents());
    await tokens.load();
    expect(tokens.authenticate(text.reveal())?.id).toBe(token.id);
    expect(await tokens.revoke("a", token.id)).toBe(true);
    await tokens.load();
    expect(tokens.authenticate(text.reveal())).toBe(undefined);
    await database.close();
    await drop();
  },
);

it("an account has at most 100,000 tokens, and another one is not concerned", async () => {
  const { database, drop } = await openSqlite();
  for (const id of ["a", "b"])
    await database.run(sql`INSERT INTO account (id, name, created_at) VALUES (${id}, ${id}, 0)`);
  await database.run(sql`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 99_999)
    INSERT INTO token (id, account_id, name, hash, suffix, permissions, created_at)
    SELECT 'id' || i, 'a', 'n', printf('%064x', i), 'x', 'tags.read', 0 FROM n`);
  const tokens = new Tokens(database, systemClock, new ResourceEvents());
  await tokens.load();
  const create = (account: string) =>
    tokens.create({ kind: "root" }, account, { name: "t", permissions: ["tags.read"] });
  const { token } = await create("a");
  await expect(create("a")).rejects.toThrow("at most 100000 tokens");
  await create("b");
  await tokens.revoke("a", token.id);
  await create("a");
  await database.close();
  await drop();
});
