/** The index of problems and the pages that operators read, on both database engines. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ENGINES, type OpenedDatabase } from "../../../../../test/support/engines.ts";
import type { TagLookup } from "../../contracts/tag-lookup.ts";
import type { Database } from "../../database/database.ts";
import { pageQuery } from "../management/instance-access.ts";
import { listInstances } from "../management/instance-list.ts";
import { InstanceCatalog } from "./instance-catalog.ts";
import { InstanceFigures } from "./instance-figures.ts";
import { InstancePages, type PageQuery } from "./instance-pages.ts";
import type { InstanceRef } from "./instance-ref.ts";
import { byNaturalName } from "./natural-name.ts";
import { ProblemIndex } from "./problem-index.ts";

const NOW = 1_800_000_000_000;

describe.each(ENGINES)("on %s", (_engine, open) => {
  let opened: OpenedDatabase;
  let database: Database;
  let catalog: InstanceCatalog;
  let pages: InstancePages;

  beforeAll(async () => {
    opened = await open();
    database = opened.database;
    catalog = new InstanceCatalog(database);
    pages = new InstancePages(database);
  });

  afterAll(async () => {
    await catalog.close();
    await database.close();
    await opened.drop();
  });

  const openIndex = (isOwn: (ref: InstanceRef) => boolean = () => true, failing = { isFailing: false }) =>
    new ProblemIndex({
      database: {
        engine: database.engine,
        problem: null,
        all: (query) => database.all(query),
        scan: (query, turn) => database.scan(query, turn),
        get: (query) => database.get(query),
        run: (query) => database.run(query),
        transaction: (work, options) =>
          failing.isFailing ? Promise.reject(new Error("down")) : database.transaction(work, options),
        close: () => Promise.resolve(),
      },
      registered: () => catalog.flush(),
      isOwn,
      onFailure: () => undefined,
    });

  const register = async (account: string, agent: string, ...names: string[]) => {
    await Promise.all(names.map((name, i) => catalog.register({ account, agent, name }, NOW + i)));
  };

  it("numbers are written with the dead letters, corrected, and only if they have changed", async () => {
    await register("numbers", "a", "x");
    const ref = { account: "numbers", agent: "a", name: "x" };
    const index = openIndex();
    const figures = new InstanceFigures(index, ref);
    let now = { queued: 2, retrying: 1, deadLetters: 1 };
    figures.known({ queued: 0, retrying: 0, deadLetters: 0 });
    figures.open(() => now);
    figures.lettersChanged();
    figures.afterRollback();
    figures.afterCommit();
    expect(figures.pending).toBeNull();
    figures.lettersChanged();
    figures.afterCommit();
    await figures.pending;
    expect((await catalog.find(ref))?.figures).toEqual(now);
    expect(figures.take()).toBeNull();
    now = { queued: 0, retrying: 0, deadLetters: 1 };
    figures.changed();
    await index.settle();
    expect((await catalog.find(ref))?.figures).toEqual(now);
    figures.open(() => {
      throw new Error("the database is damaged");
    });
    figures.changed();
    await index.close();
    expect((await catalog.find(ref))?.figures).toEqual(now);
  });

  it("a node writes for its own instances only, and tries again what could not be written", async () => {
    await register("nodes", "a", "mine", "other");
    const failing = { isFailing: true };
    const index = openIndex(({ name }) => name === "mine", failing);
    const numbers = { queued: 0, retrying: 0, deadLetters: 3 };
    for (const name of ["mine", "other"])
      index.leave({ ref: { account: "nodes", agent: "a", name }, take: () => numbers });
    index.failed(
      { account: "nodes", agent: "a", name: "mine" },
      { at: NOW, kind: "rpc", label: "m", error: "text" },
    );
    await index.flush();
    expect(await pages.problemsByAgent("nodes", undefined, 0)).toEqual([]);
    failing.isFailing = false;
    await index.close();
    expect(await pages.problemsByAgent("nodes", undefined, 0)).toEqual([
      {
        agent: "a",
        instances: 1,
        deadLetters: 3,
        deadLetterInstances: 1,
        retrying: 0,
        retryingInstances: 0,
        errors: 1,
      },
    ]);
  });

  it("the last ten failures of an instance are kept, newest first, until it is removed", async () => {
    await register("failures", "a", "x", "y");
    const ref = { account: "failures", agent: "a", name: "x" };
    const index = openIndex();
    for (let i = 0; i < 15; i++)
      index.failed(ref, {
        at: NOW + i,
        kind: "delivery",
        label: "l".repeat(500),
        error: new TypeError(`no ${i}`),
      });
    index.failed(
      { ...ref, name: "y" },
      { at: NOW, kind: "start", label: "onStart", error: new Error("other") },
    );
    const failures = await index.failuresOf(ref);
    expect(failures.map(({ error }) => error.message)).toEqual(
      Array.from({ length: 10 }, (_, i) => `no ${14 - i}`),
    );
    expect(failures[0]).toMatchObject({
      kind: "delivery",
      error: { name: "TypeError", stack: expect.any(String) },
    });
    expect(failures[0]?.label).toHaveLength(200);
    expect(await catalog.find(ref)).toMatchObject({ lastError: "TypeError: no 14", lastErrorAt: NOW + 14 });
    await index.remove(ref);
    expect(await index.failuresOf(ref)).toEqual([]);
    expect(await index.failuresOf({ ...ref, name: "y" })).toHaveLength(1);
    await index.close();
  });

  it("instances are paged in each order, with problems and search", async () => {
    const names = ["t-10", "t-9", "t-1", "other", "T-2"];
    await register("pages", "a", ...names);
    await register("pages", "b", "t-1");
    const index = openIndex();
    const set = (name: string, deadLetters: number, retrying: number, agent = "a") =>
      index.leave({
        ref: { account: "pages", agent, name },
        take: () => ({ queued: retrying, retrying, deadLetters }),
      });
    set("t-9", 5, 0);
    set("t-1", 1, 2);
    set("t-1", 7, 0, "b");
    index.failed(
      { account: "pages", agent: "a", name: "t-1" },
      { at: NOW, kind: "rpc", label: "m", error: 1 },
    );
    await index.close();
    const all = async (query: Partial<PageQuery>) => {
      const found: string[] = [];
      for (let cursor: string | null | undefined; cursor !== null;) {
        const base = { account: "pages", agent: "a", stuck: [], order: "name", limit: 2 } as const;
        const page = await pages.page({ ...base, ...query, cursor: cursor ?? undefined });
        found.push(...page.entries.map(({ name }) => name));
        cursor = page.next;
      }
      return found;
    };
    expect(await all({})).toEqual(["T-2", "other", "t-1", "t-9", "t-10"]);
    expect(await all({ search: "T-" })).toEqual(["T-2", "t-1", "t-9", "t-10"]);
    expect(await all({ order: "last_active" })).toEqual(names.toReversed());
    expect((await all({ order: "dead_letters" })).slice(0, 2)).toEqual(["t-9", "t-1"]);
    expect((await all({ order: "queued" }))[0]).toBe("t-1");
    const rule = { since: NOW - 1 };
    expect(await all({ rule: { ...rule, problem: "any" } })).toEqual(["t-1", "t-9"]);
    expect(await all({ rule: { ...rule, problem: "error" } })).toEqual(["t-1"]);
    expect(await all({ rule: { ...rule, problem: "stuck" }, stuck: ["t-10"] })).toEqual(["t-10"]);
    expect(await all({ rule: { ...rule, problem: "any" }, stuck: ["t-10"] })).toEqual(["t-1", "t-9", "t-10"]);
    const first = await pages.problems("pages", undefined, { ...rule, problem: "any" }, undefined, 2);
    const second = await pages.problems("pages", undefined, { ...rule, problem: "any" }, first.next ?? "", 2);
    expect([...first.entries, ...second.entries].map(({ agent, name }) => `${agent}/${name}`)).toEqual([
      "a/t-1",
      "a/t-9",
      "b/t-1",
    ]);
    expect(second.next).toBeNull();
    expect(await pages.withDeadLetters("pages", "a", "", 10)).toEqual(["t-1", "t-9"]);
    await expect(pages.problems("pages", undefined, { ...rule, problem: "any" }, "x", 1)).rejects.toThrow(
      "cursor",
    );
  });

  it("long names in any script are paged and found as they are written", async () => {
    const names = ["漢".repeat(256), "字".repeat(256), "Ärger"];
    await register("scripts", "a", ...names);
    const index = openIndex();
    for (const name of names)
      index.failed({ account: "scripts", agent: "a", name }, { at: NOW, kind: "rpc", label: "m", error: 1 });
    await index.close();
    const found: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null;) {
      const after = pageQuery.parse({ cursor: cursor ?? undefined }).cursor;
      const page = await pages.problems("scripts", undefined, { problem: "any", since: 0 }, after, 1);
      found.push(...page.entries.map(({ name }) => name));
      cursor = page.next;
    }
    expect(found.toSorted()).toEqual(names.toSorted());
    const base = { account: "scripts", agent: "a", stuck: [], order: "name", limit: 9 } as const;
    expect((await pages.page({ ...base, search: "Ärg" })).entries).toHaveLength(1);
  });

  it("the next page of tagged instances does not depend on the last one of the page before", async () => {
    await register("tagged", "a", "one", "two", "three");
    const matchingIds = () => Promise.resolve(new Set(["a/one", "a/two", "a/three", "b/one"]));
    const parts = { catalog, pages, tags: { matchingIds } as unknown as TagLookup };
    const query = { limit: 1, order: "last_active", stuck: [], tags: ["x"] } as const;
    const first = await listInstances(parts, "tagged", "a", query);
    await catalog.remove({ account: "tagged", agent: "a", name: "three" });
    const second = await listInstances(parts, "tagged", "a", { ...query, cursor: first.next ?? "" });
    expect([...first.entries, ...second.entries].map(({ name }) => name)).toEqual(["three", "two"]);
  });

  it("an error with any characters is written, and none is kept for an instance that does not exist any more", async () => {
    await register("odd", "a", "x", "y");
    const ref = { account: "odd", agent: "a", name: "x" };
    const failing = { isFailing: true };
    const index = openIndex(() => true, failing);
    for (const name of ["x", "y"])
      index.failed({ ...ref, name }, { at: NOW, kind: "rpc", label: "l\0", error: new Error("m\0\ud800") });
    const flushed = index.flush();
    const removed = index.remove(ref);
    await flushed;
    failing.isFailing = false;
    await removed;
    await index.close();
    expect(await index.failuresOf(ref)).toEqual([]);
    expect(await index.failuresOf({ ...ref, name: "y" })).toMatchObject([{ label: "l\uFFFD" }]);
    expect((await catalog.find({ ...ref, name: "y" }))?.lastError).toContain("Error: m\uFFFD");
  });
});

it("names are ordered by the numbers in them, and every name has its place", () => {
  const names = ["a10b2", "a2", "a10b10", "a02", "a", "b1", "a2b", "99999999999999999999", "100", "A3"];
  const sorted = byNaturalName(names);
  expect(sorted.after(undefined, 20)).toEqual([
    "100",
    "99999999999999999999",
    "A3",
    "a",
    "a02",
    "a2",
    "a2b",
    "a10b2",
    "a10b10",
    "b1",
  ]);
  expect(sorted.after("a3", 2)).toEqual(["a10b2", "a10b10"]);
  expect(sorted.after("z", 2)).toEqual([]);
});
