/**
 * Every state of a call × everything that can happen to it. In every cell: the call ends at most once, with one row, and an ended call has no
 * attempt at a provider and no timer (invariant 4).
 */
import { afterEach, beforeEach, describe, expect, it, type MockInstance, vi } from "vitest";
import { Call } from "./call.ts";
import { type ClientView, LateLimit, Loopback, REFUSED, startOf } from "./call-fixture.ts";
import type { CallOutcome } from "./call-start.ts";

/** The provider asks for a wait that no test is long enough for. */
const RETRY_AFTER_S = 1800;

let loopback: Loopback;
let limit: LateLimit | null;
let call: Call;
let see: ClientView;
let outcomes: CallOutcome[];
let timers: {
  readonly set: MockInstance<typeof setTimeout>;
  readonly cleared: MockInstance<typeof clearTimeout>;
};

beforeEach(async () => {
  timers = { set: vi.spyOn(globalThis, "setTimeout"), cleared: vi.spyOn(globalThis, "clearTimeout") };
  limit = null;
  loopback = new Loopback();
  await loopback.open();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await loopback.close();
});

async function begin(policy: Parameters<Loopback["step"]>[0] = {}): Promise<void> {
  const arrived = await loopback.arrive([loopback.step(policy)]);
  ({ see } = arrived);
  // A call that a test leaves open ends while the next test runs.
  const own: CallOutcome[] = [];
  outcomes = own;
  const start = startOf(arrived.planned, limit?.createAccount(loopback.parts.prices) ?? null);
  call = new Call(loopback.parts, start, 0, (outcome) => own.push(outcome));
  call.run();
  if (limit === null) await expect.poll(() => loopback.exchanges.length).toBeGreaterThan(0);
}

const STATES = {
  "asking a limit": async () => {
    limit = new LateLimit();
    await begin();
  },
  attempting: () => begin(),
  waiting: async () => {
    await begin({ maxAttempts: 2 });
    loopback.last.answer(503, {}, { "retry-after": String(RETRY_AFTER_S) });
    await expect.poll(() => loopback.retries()).toBe(1);
  },
  hedged: async () => {
    await begin({ hedgeAfterMs: 1 });
    await expect.poll(() => loopback.openExchanges).toBe(2);
  },
  relaying: async () => {
    await begin();
    loopback.last.begin();
    await expect.poll(() => see.text).not.toBe("");
  },
  ended: async () => {
    await begin();
    loopback.last.begin();
    loopback.last.end();
    await expect.poll(() => see.state).toBe("complete");
  },
};

const OPERATIONS = {
  "the head of a response": () => loopback.last.begin(),
  "the last byte of a response": () => {
    if (see.status === null) loopback.last.begin();
    loopback.last.end();
  },
  "a broken connection": () => loopback.last.breakOff(),
  "a client that leaves": () => see.leave(),
  "the answer of a limit": () => limit?.grant(),
  "a refusal": () => call.refuse(REFUSED),
  "a stop of the service": () => call.cancel(),
};

interface Cell {
  /** What the client has received. */
  readonly client: string;
  /** How the call has ended; null while it runs. */
  readonly ended: string | null;
  /** Attempts that run at the provider. */
  readonly running: number;
}

const cell = (client: string, ended: string | null, running = 0): Cell => ({ client, ended, running });
const LEFT = cell("nothing, broken", "499 abandoned");
const REFUSED_CELL = cell("429, complete", "429 incomplete");
const DONE = cell("200, complete", "200 complete");
const CUT = cell("200, broken", "200 incomplete");
const ABANDONED = cell("200, broken", "200 abandoned");

/** Null: it cannot come. No attempt of the call runs at the provider, its head has been sent, or no limit was asked. */
const MATRIX: Record<keyof typeof STATES, Record<keyof typeof OPERATIONS, Cell | null>> = {
  "asking a limit": {
    "the head of a response": null,
    "the last byte of a response": null,
    "a broken connection": null,
    "a client that leaves": LEFT,
    "the answer of a limit": cell("nothing, open", null, 1),
    "a refusal": REFUSED_CELL,
    "a stop of the service": LEFT,
  },
  attempting: {
    "the head of a response": cell("200, open", null, 1),
    "the last byte of a response": DONE,
    "a broken connection": cell("502, complete", "502 incomplete"),
    "a client that leaves": LEFT,
    "the answer of a limit": null,
    "a refusal": REFUSED_CELL,
    "a stop of the service": LEFT,
  },
  waiting: {
    "the head of a response": null,
    "the last byte of a response": null,
    "a broken connection": null,
    "a client that leaves": LEFT,
    "the answer of a limit": null,
    "a refusal": REFUSED_CELL,
    "a stop of the service": LEFT,
  },
  hedged: {
    "the head of a response": cell("200, open", null, 1),
    "the last byte of a response": DONE,
    "a broken connection": cell("nothing, open", null, 1),
    "a client that leaves": LEFT,
    "the answer of a limit": null,
    "a refusal": REFUSED_CELL,
    "a stop of the service": LEFT,
  },
  relaying: {
    "the head of a response": null,
    "the last byte of a response": DONE,
    "a broken connection": CUT,
    "a client that leaves": ABANDONED,
    "the answer of a limit": null,
    "a refusal": CUT,
    "a stop of the service": ABANDONED,
  },
  ended: {
    "the head of a response": null,
    "the last byte of a response": null,
    "a broken connection": null,
    "a client that leaves": DONE,
    "the answer of a limit": null,
    "a refusal": DONE,
    "a stop of the service": DONE,
  },
};

function view(): Cell {
  const [outcome] = outcomes;
  return {
    client: `${see.status ?? "nothing"}, ${see.state}`,
    ended:
      outcome === undefined
        ? null
        : `${outcome.status} ${outcome.isAbandoned ? "abandoned" : outcome.isComplete ? "complete" : "incomplete"}`,
    running: loopback.openExchanges,
  };
}

/** Timers of a retry that were not cleared. */
function retryTimers(): unknown[] {
  const { calls, results } = timers.set.mock;
  const cleared = timers.cleared.mock.calls.map(([timer]) => timer);
  return results
    .filter((_, i) => calls[i]?.[1] === RETRY_AFTER_S * 1000)
    .map(({ value }) => value)
    .filter((timer) => !cleared.includes(timer));
}

const CELLS = Object.entries(MATRIX).flatMap(([state, row]) =>
  Object.entries(row).map(([operation, expected]) => ({
    state,
    operation,
    expected,
    result: expected === null ? "cannot come" : `ended: ${expected.ended ?? "no"}`,
    reach: STATES[state as keyof typeof STATES],
    happen: OPERATIONS[operation as keyof typeof OPERATIONS],
  })),
);

it.each(CELLS)("$state × $operation → $result", async ({ state, operation, expected, reach, happen }) => {
  await reach();
  if (expected === null) {
    if (operation === "the answer of a limit") expect(limit).toBeNull();
    else if (state === "relaying") expect(see.status).toBe(200);
    else await expect.poll(() => loopback.openExchanges).toBe(0);
    return;
  }
  const sent = loopback.exchanges.length + (operation === "the answer of a limit" ? 1 : 0);
  happen();
  await expect.poll(view).toEqual(expected);
  const ended = expected.ended === null ? 0 : 1;
  expect([outcomes.length, loopback.rows.length]).toEqual([ended, ended]);
  expect(loopback.exchanges.length).toBe(sent);
  if (ended === 1) expect(retryTimers()).toEqual([]);
});

describe("a call that asks a limit", () => {
  beforeEach(() => STATES["asking a limit"]());

  it("is refused with the answer of the limit", async () => {
    limit?.refuse(REFUSED);
    await expect.poll(view).toEqual(REFUSED_CELL);
  });

  it.each([
    ["its client left", () => see.leave()],
    ["it was refused", () => call.refuse(REFUSED)],
    ["the service stops", () => call.cancel()],
  ])("sends nothing when it is granted after %s, and holds nothing", async (_, happen) => {
    happen();
    await expect.poll(() => outcomes.length).toBe(1);
    limit?.grant();
    await expect.poll(() => limit?.held).toBe(0);
    expect([outcomes.length, loopback.exchanges.length]).toEqual([1, 0]);
  });

  it("holds what it was granted until it has ended", async () => {
    limit?.grant();
    await expect.poll(() => loopback.exchanges.length).toBe(1);
    expect(limit?.held).toBe(1);
    loopback.last.begin();
    loopback.last.end();
    await expect.poll(view).toEqual(DONE);
    expect(limit?.held).toBe(0);
  });
});

describe("a hedged call", () => {
  beforeEach(() => STATES.hedged());

  it("answers with the attempt that is left when the other one breaks", async () => {
    loopback.exchanges[0]?.breakOff();
    await expect.poll(view).toEqual(cell("nothing, open", null, 1));
    loopback.last.begin();
    loopback.last.end();
    await expect.poll(view).toEqual(DONE);
    expect(outcomes[0]?.otherAttempts?.map(({ outcome }) => outcome)).toEqual(["failed"]);
  });

  it("is an error when both break", async () => {
    for (const exchange of loopback.exchanges) exchange.breakOff();
    await expect.poll(view).toEqual(cell("502, complete", "502 incomplete"));
  });

  it.each([
    ["answers", () => OPERATIONS["the last byte of a response"]()],
    ["is abandoned", () => see.leave()],
  ])("that %s lists the attempt that was cancelled", async (_, happen) => {
    happen();
    await expect.poll(() => outcomes.length).toBe(1);
    expect(outcomes[0]?.otherAttempts?.map(({ outcome }) => outcome)).toEqual(["cancelled"]);
  });
});

describe("a retry", () => {
  it("follows a failed attempt, and its answer ends the call", async () => {
    await begin({ maxAttempts: 2 });
    loopback.last.answer(503, {}, { "retry-after": "0" });
    await expect.poll(() => loopback.exchanges.length).toBe(2);
    loopback.last.begin();
    loopback.last.end();
    await expect.poll(view).toEqual(DONE);
    expect(outcomes[0]?.otherAttempts).toMatchObject([{ outcome: "failed", failure: { status: 503 } }]);
  });

  it("never follows an answer that has begun (invariant 1)", async () => {
    await begin({ maxAttempts: 5 });
    loopback.last.begin();
    await expect.poll(() => see.text).not.toBe("");
    loopback.last.breakOff();
    await expect.poll(view).toEqual(CUT);
    expect(loopback.exchanges).toHaveLength(1);
  });
});

it("a client that has read the end can read the row (invariant 2)", async () => {
  await begin();
  loopback.last.answer(200, { choices: [] });
  await expect.poll(() => see.state).toBe("complete");
  expect(loopback.rows).toMatchObject([{ statusCode: 200, success: true }]);
});

it("a client that was gone before the call began sends nothing upstream", async () => {
  const { planned, see: client } = await loopback.arrive([loopback.step()]);
  client.leave();
  await expect.poll(() => planned.response.destroyed).toBe(true);
  const ended: CallOutcome[] = [];
  new Call(loopback.parts, startOf(planned), 0, (outcome) => ended.push(outcome)).run();
  expect([ended.length, loopback.exchanges.length]).toEqual([1, 0]);
});

it("nothing is sent before the reservation is written, and nothing when the client leaves until then", async () => {
  const waiting = async () => {
    limit = new LateLimit();
    await begin();
    limit.grant(1);
    const { writing } = limit;
    await expect.poll(() => writing.length).toBe(1);
    expect(loopback.exchanges).toHaveLength(0);
    return writing;
  };
  for (const write of await waiting()) write();
  await expect.poll(() => loopback.exchanges.length).toBe(1);
  loopback.last.answer(200, { choices: [] });
  await expect.poll(() => see.state).toBe("complete");
  loopback.exchanges.length = 0;
  const writing = await waiting();
  see.leave();
  await expect.poll(() => outcomes.length).toBe(1);
  for (const write of writing) write();
  expect([loopback.exchanges.length, limit?.held]).toEqual([0, 0]);
});
