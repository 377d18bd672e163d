/** Two nodes of a cluster read and write the tags of one PostgreSQL database. */
import { canonicalTags } from "@signalbox/protocol";
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openTestPostgres, type TestPostgres } from "../../../../../test/support/test-postgres.ts";
import { sql } from "../../core/sql.ts";
import { migrate } from "../../database/migrate.ts";
import { PostgresDatabase } from "../../database/postgres/postgres-database.ts";
import { TagModel, writesArbitrary } from "./contract/tag-store-model.ts";
import { A, buildStore, idsOf, query, type Store, write } from "./contract/test-store.ts";
import { parseIfMatch, parseIfNoneMatch } from "./tag-write.ts";

const ALL_ENTRIES = { prefix: "", after: null, limit: 100 };

let server: TestPostgres;
let one: Store;
let two: Store;

beforeAll(async () => {
  server = await openTestPostgres();
  const join = async () => {
    const database = await PostgresDatabase.open(
      server.url,
      (error) => {
        throw error;
      },
      {
        cluster: {
          secretCheck: "same",
          shared: [],
          linkVersions: { min: 1, max: 1 },
          openAddress: () => Promise.resolve({ host: "127.0.0.1", port: 0 }),
          onMembers: () => undefined,
          onRejoined: () => undefined,
        },
      },
    );
    await migrate(database);
    return buildStore(database, 3);
  };
  one = await join();
  two = await join();
});
afterAll(async () => {
  await one.database.close();
  await two.database.close();
  await server.drop();
});

const KEY = write("x", {}).resource;
const textOf = async (store: Store, account: string) =>
  (await store.reader.findText(account, KEY))?.json ?? null;

it("a node reads what another node has written, whatever it read before", async () => {
  for (let i = 0; i < 20; i++) {
    const [writer, reader] = i % 2 === 0 ? [one, two] : [two, one];
    await textOf(reader, A);
    await writer.writer.write(A, write("x", { version: String(i) }));
    expect(await textOf(reader, A)).toContain(`"version":"${i}"`);
    expect(reader.reader.peek(A, KEY)).toBeUndefined();
  }
});

it("of writers at two nodes that only create, one creates", async () => {
  const except = parseIfNoneMatch("*");
  const outcomes = await Promise.all(
    Array.from({ length: 12 }, (_, i) =>
      (i % 2 === 0 ? one : two).writer.write("etags", write("created", { a: `w${i}` }, { except })),
    ),
  );
  expect(outcomes.filter(({ kind }) => kind === "stored")).toHaveLength(1);
  expect(outcomes.filter(({ kind }) => kind === "refused")).toHaveLength(11);
});

it("one of many writes with the same etag succeeds, at either node", async () => {
  const first = await one.writer.write("etags", write("x", { a: "1" }));
  const condition = parseIfMatch(first.kind === "stored" ? first.resource.etag : "");
  const outcomes = await Promise.all(
    Array.from({ length: 40 }, (_, i) =>
      (i % 2 === 0 ? one : two).writer.write("etags", write("x", { a: `w${i}` }, { condition })),
    ),
  );
  expect(outcomes.filter(({ kind }) => kind === "stored")).toHaveLength(1);
});

it("first writes of many accounts at both nodes get different numbers", async () => {
  const accounts = Array.from({ length: 30 }, (_, i) => `new${i}`);
  await Promise.all(
    accounts.flatMap((account) => [
      one.writer.write(account, write("x", { at: "one" })),
      two.writer.write(account, write("y", { at: "two" })),
    ]),
  );
  for (const account of accounts) expect(await idsOf(one, query([]), account)).toHaveLength(2);
});

it("a transaction of one account does not delay the writes of another", async () => {
  const entered = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  await one.writer.write("held", write("x", { a: "1" }));
  const holding = one.database.transaction(
    async (tx) => {
      await tx.run(sql`UPDATE tag_account SET next_change = next_change WHERE account_id = ${"held"}`);
      entered.resolve();
      await release.promise;
    },
    { scope: "a test", isConcurrent: true },
  );
  await entered.promise;
  let isStored = false;
  const waiting = two.writer.write("held", write("x", { a: "2" })).then(() => (isStored = true));
  await two.writer.write("free", write("x", { a: "2" }));
  expect(isStored).toBe(false);
  release.resolve();
  await Promise.all([holding, waiting]);
  expect(await textOf(one, "held")).toContain('"a":"2"');
});

it("after concurrent writes at both nodes, rows, lists, counts and history agree with one order of the writes", async () => {
  let round = 0;
  const property = fc.asyncProperty(
    writesArbitrary,
    fc.infiniteStream(fc.boolean()),
    async (writes, choices) => {
      const account = `p${round++}`;
      await Promise.all(
        writes.map((each) => (choices.next().value === true ? one : two).writer.write(account, each)),
      );
      // The history gives the order in which the account's lock was taken.
      const model = new TagModel();
      const final = new Map<string, string | null>();
      for (const { resource, after } of await two.log.changes(account, 0, 1000)) {
        const tags = new Map(Object.entries(after ?? {}));
        const target = { type: resource.type, id: resource.id, zoneId: "", parentId: "" };
        const action = after === null ? "delete" : "set";
        model.apply({ action, resource: target, tags, name: resource.name, condition: null, actor: "" });
        final.set(JSON.stringify(target), after === null ? null : canonicalTags(tags));
      }
      for (const { reader, vocabulary } of [one, two]) {
        for (const [target, tags] of final) {
          const found = await reader.find(account, JSON.parse(target) as typeof KEY);
          expect(found?.tags ?? null).toBe(tags);
        }
        const keys = await vocabulary.keys(account, ALL_ENTRIES);
        expect(Object.fromEntries(keys.map(({ text, uses }) => [text, uses]))).toEqual(
          model.countEntries(query([])),
        );
      }
      for (const store of [one, two]) {
        for (const filter of ["env", "!env", "team=prod", "env!=prod"]) {
          const wanted = query([filter]);
          expect((await idsOf(store, wanted, account)).toSorted()).toEqual(model.find(wanted).toSorted());
        }
      }
    },
  );
  await fc.assert(property, { numRuns: 15 });
});
