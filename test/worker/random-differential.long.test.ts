/**
 * Ten thousand random storage operations, and random calls and events, on this server and on bare workerd: every answer must be the same, but for the listed
 * reasons. The seed is fixed; SIGNALBOX_SEED tries another one.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Operation, RandomOperations, type Series } from "./support/random-operations.ts";
import { startWorker, type WorkerServer } from "./support/worker-server.ts";
import { startWorkerd, type Workerd } from "./support/workerd.ts";

const PROGRAM = "random/src/server.ts";
const SEED = Number(process.env["SIGNALBOX_SEED"] ?? 34);
const STORAGE_OPERATIONS = 10_000;
const CALLS = 3000;

let ours: WorkerServer;
let theirs: Workerd;
beforeAll(async () => {
  [ours, theirs] = await Promise.all([startWorker(PROGRAM), startWorkerd(PROGRAM, ["Storage", "Peer"])]);
});
afterAll(() => Promise.all([ours.remove(), theirs.remove()]));

interface Difference {
  readonly operation: Operation;
  readonly here: unknown;
  readonly there: unknown;
}

/** Differences that are allowed, with the reason. Each must occur, so that the list stays true. */
const ALLOWED: readonly { readonly reason: string; applies(difference: Difference): boolean }[] = [
  {
    reason: "SQLite's driver in Node does not tell the offset of an error",
    applies: ({ here, there }) => textOf(here) === textOf(there).replaceAll(/ at offset \d+/g, ""),
  },
  {
    reason:
      "workerd refuses a text of several statements while it still has the first of them from an earlier call",
    applies: ({ there }) => textOf(there).includes("can only be executed once at a time"),
  },
];

const textOf = (value: unknown): string => JSON.stringify(value) ?? "";

async function ask(url: string, series: Series): Promise<unknown[]> {
  const response = await fetch(url, { method: "POST", body: JSON.stringify(series) });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
  return JSON.parse(text) as unknown[];
}

/** The differences of one series that no reason allows; an object whose storage may differ is not compared further. */
async function compare(
  all: readonly Series[],
  used: Set<string>,
): Promise<{ differences: Difference[]; operations: number }> {
  const differences: Difference[] = [];
  let operations = 0;
  for (const series of all) {
    const [here, there] = await Promise.all([ask(ours.url, series), ask(theirs.url, series)]);
    for (const [i, operation] of series.operations.entries()) {
      operations += 1;
      const difference = { operation, here: here[i], there: there[i] };
      if (JSON.stringify(difference.here) === JSON.stringify(difference.there)) continue;
      const allowed = ALLOWED.find(({ applies }) => applies(difference));
      if (allowed === undefined) differences.push(difference);
      else used.add(allowed.reason);
    }
    if (differences.length > 0) break;
  }
  return { differences, operations };
}

function kindOf({ operation, here, there }: Difference): string {
  return JSON.stringify([operation[0], here, there]);
}

const used = new Set<string>();

async function compareMany(count: number, next: (object: number) => readonly Series[]): Promise<void> {
  const found: Difference[] = [];
  for (let object = 0, done = 0; done < count; object += 1) {
    const { differences, operations } = await compare(next(object), used);
    // Of those that look alike, one says enough.
    found.push(...differences.filter((one) => !found.some((other) => kindOf(other) === kindOf(one))));
    done += operations;
    if (found.length >= 20) break;
  }
  expect(found.map((difference) => JSON.stringify(difference).slice(0, 600))).toEqual([]);
}

test("storage answers as workerd does", { timeout: 600_000 }, async () => {
  const random = new RandomOperations(SEED);
  await compareMany(STORAGE_OPERATIONS, (object) => random.storage(object));
});

test("calls and events are those of workerd", { timeout: 600_000 }, async () => {
  const random = new RandomOperations(SEED + 1);
  await compareMany(CALLS, (object) => [random.calls(object)]);
});

test("every allowed difference occurs", () => {
  expect(ALLOWED.filter(({ reason }) => !used.has(reason)).map(({ reason }) => reason)).toEqual([]);
});
