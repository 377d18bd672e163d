/** The same program with the same client on this server and on bare workerd: the transcripts must be equal, but for a list of reasons. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CASES, type Transcript } from "./support/differential-client.ts";
import { DIFFERENCES } from "./support/differences.ts";
import { startWorker, type WorkerServer } from "./support/worker-server.ts";
import { startWorkerd, type Workerd } from "./support/workerd.ts";

const PROGRAM = "differential/src/server.ts";
const CLASSES = ["Store", "Order", "Socket", "Remote", "Plain", "Broken", "Desk"];

let ours: WorkerServer;
/** Two nodes: about half of the objects are not on the one that is asked. */
let nodes: WorkerServer;
let theirs: Workerd;
beforeAll(async () => {
  [ours, nodes, theirs] = await Promise.all([
    startWorker(PROGRAM),
    startWorker(PROGRAM, { nodes: 2 }),
    startWorkerd(PROGRAM, CLASSES),
  ]);
});
afterAll(() => Promise.all([ours.remove(), nodes.remove(), theirs.remove()]));

describe.each(Object.entries(CASES))("%s", (name, run) => {
  test("is the same here, on two nodes, and on workerd", async () => {
    const [here, elsewhere, there] = await Promise.all([run(ours), run(nodes), run(theirs)]);
    // An error is an object: compared with a transcript it would fill the log.
    for (const transcript of [here, elsewhere, there]) expect(transcript).toBeInstanceOf(Array);
    const listed = DIFFERENCES[name] ?? {};
    expect(withoutListed(here, listed)).toEqual(withoutListed(there, listed));
    const stale = Object.keys(listed).filter((step) => isSame(here, there, step));
    expect(stale, "entries of the list that are no differences").toEqual([]);
    expect(elsewhere).toEqual(here);
  });
});

test("every entry of the list belongs to a case", () => {
  expect(Object.keys(DIFFERENCES).filter((name) => !(name in CASES))).toEqual([]);
});

/** The steps in their order; of a listed one only that it was made. */
function withoutListed(transcript: Transcript, listed: Readonly<Record<string, string>>): unknown[] {
  return transcript.map(([step, value]) => (step in listed ? [step] : [step, value]));
}

function isSame(here: Transcript, there: Transcript, step: string): boolean {
  const [one, other] = [here, there].map((transcript) => transcript.find(([name]) => name === step)?.[1]);
  return JSON.stringify(one) === JSON.stringify(other);
}
