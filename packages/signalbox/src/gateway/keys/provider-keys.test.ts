import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { MasterKeys } from "../../accounts/index.ts";
import { Secret } from "../../core/secret.ts";
import { sql } from "../../core/sql.ts";
import { migrate } from "../../database/migrate.ts";
import { LocalSettings } from "../../database/shared-settings.ts";
import { SqliteDatabase } from "../../database/sqlite/sqlite-database.ts";
import { ProviderKeys, type ProviderKeysParts } from "./provider-keys.ts";

const A = { accountId: "a", gatewayId: null };
const B = { accountId: "b", gatewayId: null };

let database: SqliteDatabase;
let keys: ProviderKeys;
let decrypted: () => number;
beforeEach(async () => {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-provider-keys-"));
  database = await SqliteDatabase.open(join(folder, "test.db"), () => undefined);
  onTestFinished(async () => {
    await database.close();
    await rm(folder, { recursive: true, force: true });
  });
  await migrate(database);
  for (const id of ["a", "b"])
    await database.run(sql`INSERT INTO account (id, name, created_at) VALUES (${id}, ${id}, 0)`);
  const masterKeys = new MasterKeys({
    fromEnvironment: [new Secret("a master key for this test only")],
    file: null,
    onFile: () => undefined,
  });
  const opening = vi.spyOn(masterKeys, "opening");
  // A data key is encrypted once for each key that is stored.
  const sealing = vi.spyOn(masterKeys, "sealing");
  decrypted = () => opening.mock.calls.length - sealing.mock.calls.length;
  keys = new ProviderKeys({
    database,
    settings: new LocalSettings(database),
    clock: { now: () => 1000 },
    masterKeys,
    secretFolder: "/run/secrets",
    customAddress: () => undefined,
    onProblem: () => undefined,
  } as unknown as ProviderKeysParts);
  await keys.load();
});

const store = (scope: typeof A, alias: string, isDefault = false) =>
  keys.create(scope, "openai", { alias, isDefault, secret: new Secret(`sk-${alias}`) });
const defaults = () =>
  keys
    .list(A)
    .filter(({ key }) => key.isDefault)
    .map(({ key }) => key.alias);

it("a write decrypts the keys that it changes, and no others", async () => {
  for (let i = 0; i < 20; i++) await store(A, `key-${i}`);
  const before = decrypted();
  const { key } = await store(B, "new");
  expect(decrypted() - before).toBe(1);
  await keys.update(B, key.id, { weight: 2 });
  expect(decrypted() - before).toBe(2);
  await keys.delete(B, key.id);
  expect(decrypted() - before).toBe(2);
  expect([keys.list(A).length, keys.list(B).length]).toEqual([20, 0]);
});

it("a new default replaces the one before it, and an edited key keeps its place", async () => {
  const first = await store(A, "first", true);
  await store(A, "second", true);
  expect(defaults()).toEqual(["second"]);
  await keys.update(A, first.key.id, { isDefault: true });
  expect(defaults()).toEqual(["first"]);
  expect(keys.list(A).map(({ key }) => key.alias)).toEqual(["first", "second"]);
  expect(keys.get(A, first.key.id).reveal()).toBe("sk-first");
});

it("has what it would have after a start", async () => {
  const shown = () => keys.list(A).map(({ key, reveal }) => ({ ...key, text: reveal() }));
  const first = await store(A, "first", true);
  await store(A, "second", true);
  await store(A, "");
  await keys.update(A, first.key.id, { isDisabled: true });
  await keys.delete(A, (await store(A, "third")).key.id);
  const before = shown();
  await keys.load();
  expect(shown()).toEqual(before);
});

it("an account has at most 1,000 keys, and another one is not concerned", async () => {
  await store(A, "first");
  await database.run(sql`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 998)
    INSERT INTO stored_provider_key
      (id, account_id, provider_slug, alias, is_default, secret_id, preview, weight, models, disabled, created_at, modified_at)
    SELECT 'id' || i, 'a', 'openai', 'alias-' || i, 0, 'env:X', '', 1, '[]', 0, 0, 0 FROM n`);
  await store(A, "last");
  await expect(store(A, "further")).rejects.toThrow("at most 1000 provider keys");
  await store(B, "first");
});
