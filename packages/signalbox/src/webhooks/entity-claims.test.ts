/** The instance name of an entity, on both database engines. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ENGINES, type OpenedDatabase } from "../../../../test/support/engines.ts";
import { sql } from "../core/sql.ts";
import { type ClaimScope, EntityClaims, normalise, toInstanceName } from "./entity-claims.ts";

/** Runs of the property. Each makes a few writes, which take longer on PostgreSQL. */
const RUNS = { sqlite: 80, postgres: 30 };

describe.each(ENGINES)("on %s", (engine, open) => {
  let opened: OpenedDatabase;
  let scopes = 0;
  /** An agent of its own for each case. */
  const newScope = (account = "default"): ClaimScope => ({ account, agent: `agent-${scopes++}` });
  const newClaims = () => new EntityClaims(opened.database, () => undefined);
  const resolveAll = async (entities: readonly string[], scope = newScope(), claims = newClaims()) => {
    const names: string[] = [];
    for (const entity of entities) names.push(await claims.resolve(scope, entity, "plain"));
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
    for (const [i, entity] of shuffled) expect(await claims.resolve(scope, entity, "plain")).toBe(names[i]);
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
    const arrival = fc.record({ entity, form: fc.constantFrom("plain" as const, "reversible" as const) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(arrival, { minLength: 1, maxLength: 4 }), { maxLength: 6 }),
        async (groups) => {
          const scope = newScope();
          const claims = newClaims();
          const nameOf = new Map<string, string>();
          const ownerOf = new Map<string, string>();
          for (const group of groups) {
            // The entities of a group arrive at the same time.
            const usable = group.filter((one) => toInstanceName(one.entity, one.form) !== null);
            const names = await Promise.all(
              usable.map(async (one) => claims.resolve(scope, one.entity, one.form)),
            );
            for (const [i, name] of names.entries()) {
              const one = usable[i];
              const folded = normalise(one?.entity ?? "");
              expect(ownerOf.get(name) ?? folded).toBe(folded);
              ownerOf.set(name, folded);
              const key = `${one?.form} ${folded}`;
              expect(nameOf.get(key) ?? name).toBe(name);
              nameOf.set(key, name);
            }
          }
          const restarted = newClaims();
          await Promise.all(
            [...nameOf].map(async ([key, name]) => {
              const [form = "", ...rest] = key.split(" ");
              expect(await restarted.resolve(scope, rest.join(" "), form as "plain" | "reversible")).toBe(
                name,
              );
            }),
          );
        },
      ),
      { numRuns: RUNS[engine] },
    );
  });

  it("one of several entities that arrive at the same time owns the name, also in different processes", async () => {
    const scope = newScope();
    const names = await Promise.all(
      ["r/s", "r-s", "r s", "r/s"].map(async (entity) => newClaims().resolve(scope, entity, "plain")),
    );
    expect(new Set(names).size).toBe(3);
    expect(names[3]).toBe(names[0]);
    expect(names).toContain("r-s");
  });

  it("names belong to an account and an agent", async () => {
    const claims = newClaims();
    const scope = newScope();
    expect(await claims.resolve(scope, "a/b", "plain")).toBe("a-b");
    expect(await claims.resolve({ ...scope, account: "other" }, "a-b", "plain")).toBe("a-b");
    expect(await claims.resolve(newScope(), "a b", "plain")).toBe("a-b");
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
      const name = await claims.resolve(scope, entity, "plain", tell);
      expect(told).toContain(name);
      return name;
    });
    expect(await Promise.all(both)).toEqual(["x-y-z", "x-y_2fz"]);
    expect(claims.resolve(scope, "x/y-z", "plain", tell)).toBe("x-y-z");
    expect(told).toEqual(["x-y-z", "x-y_2fz"]);
    expect(claims.resolve(scope, "cus_9s6", "plain")).toBe("cus_9s6");
  });

  it("claims of one turn of the event loop are one statement", async () => {
    let statements = 0;
    const claims = new EntityClaims(
      {
        engine: opened.database.engine,
        problem: null,
        all: (query) => opened.database.all(query),
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
      Array.from({ length: 100 }, async (_, i) => claims.resolve(scope, `many/${i}`, "plain")),
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
        get: (query) => database.get(query),
        run: (query) => database.run(query),
        transaction: (work) =>
          isFull ? Promise.reject(new Error("disk is full")) : database.transaction(work),
        close: () => Promise.resolve(),
      },
      (cause) => causes.push(cause),
    );
    const scope = newScope();
    await expect(claims.resolve(scope, "f/g", "plain")).rejects.toMatchObject({
      id: "overloaded",
      headers: { "retry-after": "2" },
    });
    expect(causes).toEqual([new Error("disk is full")]);
    isFull = false;
    expect(await claims.resolve(scope, "f/g", "plain")).toBe("f-g");
  });

  it("claims are rows with their account and agent", async () => {
    const scope = newScope("acct-b");
    await resolveAll(["p/q", "p-q"], scope);
    expect(
      await opened.database.all(
        sql`SELECT account_id, name, entity FROM webhook_claim WHERE agent = ${scope.agent} ORDER BY name`,
      ),
    ).toEqual([{ account_id: "acct-b", name: "p-q", entity: "p/q" }]);
  });
});
