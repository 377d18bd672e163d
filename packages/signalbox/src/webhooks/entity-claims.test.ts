/** The instance name of an entity, on both database engines. */
import { createHash } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ENGINES, type OpenedDatabase } from "../../../../test/support/engines.ts";
import { sql } from "../core/sql.ts";
import { type ClaimScope, EntityClaims } from "./entity-claims.ts";
import { fold, toEntity, toInstanceName } from "./entity-names.ts";

/** Runs of the property. Each makes a few writes, which take longer on PostgreSQL. */
const RUNS = { sqlite: 80, postgres: 30 };

const folded = (text: string) => toEntity(text, false);
const exact = (text: string) => toEntity(text, true);
/** The name of a text whose other names belong to look-alikes. */
const own = (text: string) => `~~${createHash("sha256").update(text).digest("hex")}`;

describe.each(ENGINES)("on %s", (engine, open) => {
  let opened: OpenedDatabase;
  let scopes = 0;
  /** An agent of its own for each case. */
  const newScope = (account = "default"): ClaimScope => ({ account, agent: `agent-${scopes++}` });
  const newClaims = () => new EntityClaims(opened.database, () => undefined);
  const resolveAll = async (entities: readonly string[], scope = newScope(), claims = newClaims()) => {
    const names: string[] = [];
    for (const entity of entities) names.push(await claims.resolve(scope, folded(entity), "plain"));
    return names;
  };

  beforeAll(async () => {
    opened = await open();
  });

  afterAll(async () => {
    await opened.database.close();
    await opened.drop();
  });

  it.each([
    [
      ["acme/widgets", "acme-widgets"],
      ["acme-widgets", "~acme-widgets"],
    ],
    [
      ["acme-widgets", "acme/widgets"],
      ["acme-widgets", "acme_2fwidgets"],
    ],
    [
      ["a/b-c", "a-b/c", "A/B-C"],
      ["a-b-c", "a-b_2fc", "a-b-c"],
    ],
    [
      ["a x", "a-x", "a/x"],
      ["a-x", "~a-x", "a_2fx"],
    ],
    [
      ["c/é", "c-é"],
      ["c-é", "c-_c3_a9"],
    ],
    [
      ["d_2fx", "d-x", "d/x"],
      ["d_2fx", "d-x", "~d_2fx"],
    ],
    [
      ["d-x", "d/x", "d_2fx"],
      ["d-x", "d_2fx", "d_5f2fx"],
    ],
    [
      ["d/x", "d_2fx", "d-x"],
      ["d-x", "d_2fx", "~d-x"],
    ],
    [
      ["cus_123", "CUS_123", "cus_9s6X"],
      ["cus_123", "cus_123", "cus_9s6x"],
    ],
  ])("%j are %j, and still are after a restart", async (entities, names) => {
    const scope = newScope();
    expect(await resolveAll(entities, scope)).toEqual(names);
    const shuffled = [...entities.entries()].toReversed();
    const claims = newClaims();
    for (const [i, entity] of shuffled)
      expect(await claims.resolve(scope, folded(entity), "plain")).toBe(names[i]);
  });

  it.each([
    [
      ["Zed", "zed", "ZED", " zed"],
      ["zed", "~zed", own("ZED"), own(" zed")],
    ],
    [
      ["cus_9s6X", "cus_9s6x"],
      ["cus_9s6x", "cus_5f9s6x"],
    ],
    // A composed and a decomposed letter; the Kelvin sign.
    [
      ["\u00e9", "e\u0301"],
      ["\u00e9", "_c3_a9"],
    ],
    [
      ["k", "\u212a"],
      ["k", "~k"],
    ],
  ])("the exact texts %j are %j, and still are after a restart", async (texts, names) => {
    const scope = newScope();
    for (const claims of [newClaims(), newClaims()]) {
      for (const [i, text] of texts.entries()) {
        expect(await claims.resolve(scope, exact(text), "plain")).toBe(names[i]);
      }
    }
  });

  it("a text without regard to case reaches the instance of the first of its exact spellings, whichever arrives first", async () => {
    for (const isFirst of [true, false]) {
      const scope = newScope();
      for (const text of ["unit-A", "unit.b"]) {
        const name = text.toLowerCase();
        const arrivals = [folded(text), exact(text)];
        for (const entity of isFirst ? arrivals : arrivals.toReversed()) {
          expect(await newClaims().resolve(scope, entity, "plain")).toBe(name);
        }
        const claims = newClaims();
        const names = [exact(text.toUpperCase()), folded(text.toUpperCase()), exact(text)].map(async (one) =>
          claims.resolve(scope, one, "plain"),
        );
        expect(await Promise.all(names)).toEqual([`~${name}`, name, name]);
      }
    }
  });

  it("a name that a folded text owns goes to the first exact text, and to no other", async () => {
    const scope = newScope();
    await opened.database.run(
      sql`INSERT INTO webhook_claim (account_id, agent, name, entity)
          VALUES (${scope.account}, ${scope.agent}, 'dev-a', 'dev-a'), (${scope.account}, ${scope.agent}, 'x-y', 'x/y')`,
    );
    const names = await Promise.all(
      ["DEV-A", "Dev-A", "X/Y", "X-Y", "cusA"].map(async (text) =>
        newClaims().resolve(scope, exact(text), "plain"),
      ),
    );
    expect(names.slice(0, 2).sort()).toEqual(["dev-a", "~dev-a"]);
    expect(names.slice(2)).toEqual(["x-y", "~x-y", "cusa"]);
    const claims = newClaims();
    expect(await claims.resolve(scope, exact("DEV-A"), "plain")).toBe(names[0]);
    expect(await claims.resolve(scope, folded("Dev-A"), "plain")).toBe("dev-a");
  });

  it("no two entities share an instance, whatever their names and the order in which they arrive", async () => {
    // Few letters, so that names often collide.
    const text = fc.string({
      unit: fc.constantFrom(..."ab-/_ .2fd5~é\u0301A".split("")),
      minLength: 1,
      maxLength: 6,
    });
    const entity = fc.oneof(
      text,
      fc.constantFrom("d_2fx", "d-x", "d/x", "d_5f2fx", "d_2dx", "~d-x", "~~", "a\ud800", "a\udbff"),
    );
    const arrival = fc.record({
      entity: fc.tuple(entity, fc.boolean()).map(([one, isExact]) => toEntity(one, isExact)),
      form: fc.constantFrom("plain" as const, "reversible" as const),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(arrival, { minLength: 1, maxLength: 4 }), { maxLength: 6 }),
        async (groups) => {
          const scope = newScope();
          const claims = newClaims();
          const nameOf = new Map<string, string>();
          const arrived = new Map<string, (typeof groups)[number][number]>();
          const foldedOf = new Map<string, string>();
          const spellingOf = new Map<string, string>();
          const isFirst = (seen: Map<string, string>, name: string, owner: string) => {
            expect(seen.get(name) ?? owner).toBe(owner);
            seen.set(name, owner);
          };
          for (const group of groups) {
            // The entities of a group arrive at the same time.
            const usable = group.filter((one) => toInstanceName(one.entity.text, one.form) !== null);
            const names = await Promise.all(
              usable.map(async (one) => ({
                ...one,
                name: await claims.resolve(scope, one.entity, one.form),
              })),
            );
            for (const { name, ...one } of names) {
              isFirst(foldedOf, name, fold(one.entity.text));
              if (one.entity.isExact) isFirst(spellingOf, name, one.entity.text);
              const key = JSON.stringify(one);
              isFirst(nameOf, key, name);
              arrived.set(key, one);
            }
          }
          const restarted = newClaims();
          await Promise.all(
            [...arrived].map(async ([key, one]) =>
              expect(await restarted.resolve(scope, one.entity, one.form)).toBe(nameOf.get(key)),
            ),
          );
        },
      ),
      { numRuns: RUNS[engine] },
    );
  });

  it("one of several entities that arrive at the same time owns the name, also in different processes", async () => {
    const scope = newScope();
    const names = await Promise.all(
      ["r/s", "r-s", "r s", "r/s"].map(async (entity) => newClaims().resolve(scope, folded(entity), "plain")),
    );
    expect(new Set(names).size).toBe(3);
    expect(names[3]).toBe(names[0]);
    expect(names).toContain("r-s");
  });

  it("names belong to an account and an agent", async () => {
    const claims = newClaims();
    const scope = newScope();
    expect(await claims.resolve(scope, folded("a/b"), "plain")).toBe("a-b");
    expect(await claims.resolve({ ...scope, account: "other" }, folded("a-b"), "plain")).toBe("a-b");
    expect(await claims.resolve(newScope(), folded("a b"), "plain")).toBe("a-b");
  });

  it("an entity whose reversible name is too long still gets a name that no other has", async () => {
    const long = "é/".repeat(60);
    const [first, second, third] = await resolveAll([
      long.replaceAll("/", "-"),
      long,
      long.replaceAll("/", "!"),
    ]);
    expect(first).toBe("é-".repeat(60));
    expect(second).toMatch(/^~~[0-9a-f]{64}$/);
    expect(third).toMatch(/^~~[0-9a-f]{64}$/);
    expect(third).not.toBe(second);
  });

  it("the name of a claim is reported once, before the claim is durable, and known names need no claim", async () => {
    const told: string[] = [];
    const tell = (name: string) => told.push(name);
    const claims = newClaims();
    const scope = newScope();
    const both = ["x/y-z", "x-y/z"].map(async (entity) => {
      const name = await claims.resolve(scope, folded(entity), "plain", tell);
      expect(told).toContain(name);
      return name;
    });
    expect(await Promise.all(both)).toEqual(["x-y-z", "x-y_2fz"]);
    expect(claims.resolve(scope, folded("x/y-z"), "plain", tell)).toBe("x-y-z");
    expect(told).toEqual(["x-y-z", "x-y_2fz"]);
    expect(claims.resolve(scope, folded("cus_9s6"), "plain")).toBe("cus_9s6");
  });

  it("claims of one turn of the event loop are one statement", async () => {
    let statements = 0;
    const claims = new EntityClaims(
      {
        engine: opened.database.engine,
        problem: null,
        all: (query) => opened.database.all(query),
        scan: (query, turn) => opened.database.scan(query, turn),
        get: (query) => opened.database.get(query),
        run: (query) => opened.database.run(query),
        transaction: (work) =>
          opened.database.transaction((tx) => {
            const count = <T>(result: Promise<T>) => {
              statements += 1;
              return result;
            };
            return work({
              all: (query) => count(tx.all(query)),
              get: (query) => count(tx.get(query)),
              run: (query) => count(tx.run(query)),
            });
          }),
        close: () => Promise.resolve(),
      },
      () => undefined,
    );
    const scope = newScope();
    await Promise.all(
      Array.from({ length: 100 }, async (_, i) => claims.resolve(scope, folded(`many/${i}`), "plain")),
    );
    expect(statements).toBe(1);
  });

  it("a claim that cannot be written is refused as overloaded, and succeeds when it is repeated", async () => {
    let isFull = true;
    const causes: unknown[] = [];
    const { database } = opened;
    const claims = new EntityClaims(
      {
        engine: database.engine,
        problem: null,
        all: (query) => database.all(query),
        scan: (query, turn) => database.scan(query, turn),
        get: (query) => database.get(query),
        run: (query) => database.run(query),
        transaction: (work) =>
          isFull ? Promise.reject(new Error("disk is full")) : database.transaction(work),
        close: () => Promise.resolve(),
      },
      (cause) => causes.push(cause),
    );
    const scope = newScope();
    await expect(claims.resolve(scope, folded("f/g"), "plain")).rejects.toMatchObject({
      id: "overloaded",
      headers: { "retry-after": "2" },
    });
    expect(causes).toEqual([new Error("disk is full")]);
    isFull = false;
    expect(await claims.resolve(scope, folded("f/g"), "plain")).toBe("f-g");
  });

  it("claims are rows with their account and agent", async () => {
    const scope = newScope("acct-b");
    await resolveAll(["p/q", "p-q"], scope);
    expect(
      await opened.database.all(
        sql`SELECT account_id, name, entity FROM webhook_claim WHERE agent = ${scope.agent} ORDER BY name`,
      ),
    ).toEqual([
      { account_id: "acct-b", name: "p-q", entity: "p/q" },
      { account_id: "acct-b", name: "~p-q", entity: "p-q" },
    ]);
  });
});
