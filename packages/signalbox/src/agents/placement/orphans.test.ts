import { beforeEach, expect, test } from "vitest";
import { createLogger } from "../../telemetry/logger.ts";
import { databaseName, keyOf } from "../instance/instance-ref.ts";
import type { DueEntry } from "../instance/instance-catalog.ts";
import { Orphans } from "./orphans.ts";
import { FakeNetwork, FakeOwnership, place } from "./placement-fixture.ts";
import { rendezvous } from "./rendezvous.ts";

let network: FakeNetwork;
let ownership: FakeOwnership;
let due: DueEntry[];
let now: number;
let woken: string[];
let orphans: Orphans;

const entry = (name: string): DueEntry => ({ account: "default", agent: "counter", name, nextDueAt: 1 });
const ofWinner = (node: string) =>
  Array.from({ length: 100 }, (_, i) => entry(`n${i}`)).filter(
    (one) => rendezvous(databaseName(one), ["1", "2"]) === node,
  );

beforeEach(() => {
  network = new FakeNetwork("1", "2");
  ownership = new FakeOwnership();
  due = [];
  now = 0;
  woken = [];
  const placement = place(network, ownership);
  orphans = new Orphans({
    network,
    ownership,
    catalog: {
      orphans: async (_living, { after }, _now, limit) => {
        const from =
          after === undefined ? 0 : due.findIndex((one) => keyOf(one) === keyOf(after as DueEntry)) + 1;
        return due.slice(from, from + limit);
      },
    },
    clock: { now: () => 1000 },
    steadyClock: { now: () => now },
    logger: createLogger({ level: "silent", isPretty: false }),
    candidate: (name) => placement.candidate(name),
    wakeAll: async ({ read, select, woken: count }) => {
      for (let after: DueEntry | undefined; ;) {
        const page = await read({ agent: "counter", account: null, without: new Set(), after }, 100);
        const selected = await select?.(page);
        if (selected === undefined || selected === null) return;
        for (const { name } of selected) {
          woken.push(name);
          count?.();
        }
        after = page.at(-1);
        if (page.length < 100) return;
      }
    },
  });
});

test("a node takes at once what the hash gives to it, and leaves the rest to the others for five seconds", async () => {
  const mine = ofWinner("1").slice(0, 3);
  const theirs = ofWinner("2").slice(0, 3);
  due = [...mine, ...theirs];
  await orphans.scan();
  expect(woken).toEqual(mine.map(({ name }) => name));
  due = theirs;
  now = 4999;
  await orphans.scan();
  expect(woken).toHaveLength(3);
  now = 5000;
  await orphans.scan();
  expect(woken.slice(3)).toEqual(theirs.map(({ name }) => name));
  expect(orphans.woken).toBe(6);
});

test("an instance that another node has taken meanwhile counts anew when it is left again", async () => {
  const [one] = ofWinner("2");
  if (one === undefined) throw new Error("no instance");
  due = [one];
  await orphans.scan();
  due = [];
  now = 4000;
  await orphans.scan();
  due = [one];
  now = 6000;
  await orphans.scan();
  expect(woken).toEqual([]);
});

test("what a living node owns is left to it; what this node owns is woken here", async () => {
  const [first, second, third] = ofWinner("2");
  if (first === undefined || second === undefined || third === undefined) throw new Error("no instance");
  due = [first, second, third];
  ownership.owners.set(databaseName(first), "2");
  ownership.held.add(databaseName(second));
  ownership.owners.set(databaseName(third), "1");
  await orphans.scan();
  expect(woken).toEqual([second.name, third.name]);
  now = 60_000;
  await orphans.scan();
  expect(woken).not.toContain(first.name);
});

test("what this node knows of owners is not relied on", async () => {
  const [one] = ofWinner("1");
  if (one === undefined) throw new Error("no instance");
  due = [one];
  ownership.known.set(databaseName(one), "2");
  await orphans.scan();
  expect(woken).toEqual([one.name]);
});

test("all pages are read, also if the first ones have nothing for this node", async () => {
  due = Array.from({ length: 1000 }, (_, i) => entry(`page-${i}`));
  const expected = due.filter((one) => rendezvous(databaseName(one), ["1", "2"]) === "1");
  await orphans.scan();
  expect(woken).toEqual(expected.map(({ name }) => name));
});

test("a node that is no member takes nothing", async () => {
  due = ofWinner("1");
  network.self = "7";
  await orphans.scan();
  expect(woken).toEqual([]);
});
