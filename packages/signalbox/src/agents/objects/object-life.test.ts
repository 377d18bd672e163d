/** The life of an object: every state against every operation, then what belongs to single states. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { waitUntil } from "../../../../../test/support/wait-until.ts";
import type { ObjectContext } from "./object-context.ts";
import { openHost, type TestHost } from "./object-host-fixture.ts";
import { DurableObject } from "./workers-module.ts";

const until = (check: () => boolean) => waitUntil(check, (isTrue) => isTrue);

/** Gates that tests open, by name. */
const gates = new Map<string, PromiseWithResolvers<void>>();
const gate = (name: string) => {
  const known = gates.get(name) ?? Promise.withResolvers<void>();
  gates.set(name, known);
  return known;
};
let constructed = 0;
let failingStarts = 0;
let rings = 0;
/** Trusted statements of all objects. */
const statements: string[] = [];
let leftOver: (() => unknown) | null = null;

class Life extends DurableObject {
  declare readonly ctx: ObjectContext;
  readonly born: number;

  constructor(ctx: ObjectContext, env: unknown) {
    super(ctx, env);
    constructed += 1;
    this.born = constructed;
    if (failingStarts > 0) {
      failingStarts -= 1;
      void ctx
        .blockConcurrencyWhile(async () => {
          await Promise.resolve();
          throw new TypeError("the start failed");
        })
        .catch(() => undefined);
    }
  }

  add(): number {
    const count = Number(this.ctx.storage.kv.get("count") ?? 0) + 1;
    this.ctx.storage.kv.put("count", count);
    return count;
  }

  fetch(request: Request): Response {
    if (!request.url.endsWith("/read")) return Response.json(this.add());
    // Somebody else reads the body that is returned.
    const response = new Response(new ReadableStream());
    response.body?.getReader();
    return response;
  }

  async wait(name: string): Promise<string> {
    await gate(name).promise;
    return `${name} passed`;
  }

  async waitAndWrite(name: string): Promise<void> {
    this.ctx.storage.kv.put("before", name);
    await gate(name).promise;
    this.ctx.storage.kv.put("after", name);
  }

  block(name: string): Promise<string> {
    return this.ctx.blockConcurrencyWhile(async () => {
      await gate(name).promise;
      return "unblocked";
    });
  }

  background(name: string): void {
    this.ctx.waitUntil(gate(name).promise);
  }

  abort(): never {
    this.ctx.storage.kv.put("lost", true);
    this.ctx.abort("reset for a test");
  }

  keepFunction(): void {
    leftOver = () => this.add();
  }

  async deleteAll(): Promise<void> {
    await this.ctx.storage.deleteAll();
  }

  async ring(): Promise<void> {
    await this.ctx.storage.setAlarm(Date.now());
  }

  alarm(): void {
    rings += 1;
    this.add();
  }

  read(key: string): unknown {
    return this.ctx.storage.kv.get(key);
  }

  /** Calls itself where no event of its own can start. */
  async waitForItself(kind: string): Promise<unknown> {
    const self = test.env["Life"]?.get(this.ctx.id) as unknown as Calls;
    const wait = async () => {
      this.ctx.storage.kv.put("stuck", kind);
      gate(kind);
      return self["add"]?.();
    };
    return kind === "transaction" ? this.ctx.storage.transaction(wait) : this.ctx.blockConcurrencyWhile(wait);
  }

  birth(): number {
    return this.born;
  }
}

let folder: string;
let test: TestHost;
let objects = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-life-"));
  test = await openHost(folder, { Life }, { onRun: (text) => statements.push(text) });
});
beforeEach(() => {
  objects += 1;
  gates.clear();
  constructed = 0;
  failingStarts = 0;
  rings = 0;
});
afterEach(() => {
  for (const one of gates.values()) one.resolve();
});
afterAll(async () => {
  await test.close();
  await rm(folder, { recursive: true, force: true });
});

type Calls = Record<string, (...args: unknown[]) => Promise<unknown>> & { fetch: typeof fetch };
const life = () => test.env["Life"]?.getByName(`object ${objects}`) as unknown as Calls;
const call = (method: string, ...args: unknown[]) =>
  life()[method]?.(...args) ?? Promise.reject(new Error(method));

/** The object of the test, if it is in memory. */
function inMemory() {
  const id = String(test.env["Life"]?.idFromName(`object ${objects}`));
  return [...test.instances()].filter(({ ref }) => ref.name === id);
}

async function evict(): Promise<void> {
  await until(() => inMemory().every(({ isIdle }) => isIdle));
  for (const instance of inMemory()) instance.hibernate();
}

/** Brings the object into the state; the number of `add`s that it remembers then, and what ends the state. */
const STATES: Record<string, () => Promise<{ count: number; release?: () => Promise<unknown> }>> = {
  "does not exist": async () => ({ count: 0 }),
  "is in memory": async () => {
    await call("add");
    return { count: 1 };
  },
  "runs an event": async () => {
    await call("add");
    const running = call("wait", "running").catch(() => undefined);
    return { count: 1, release: () => (gate("running").resolve(), running) };
  },
  "has background work": async () => {
    await call("add");
    await call("background", "work");
    return { count: 1, release: async () => gate("work").resolve() };
  },
  "was evicted": async () => {
    await call("add");
    await evict();
    return { count: 1 };
  },
  "was aborted": async () => {
    await call("add");
    await expect(call("abort")).rejects.toThrow("reset for a test");
    await until(() => inMemory().length === 0);
    return { count: 1 };
  },
  "was emptied": async () => {
    await call("add");
    await call("deleteAll");
    return { count: 0 };
  },
  "was emptied and evicted": async () => {
    await call("add");
    await call("deleteAll");
    await evict();
    return { count: 0 };
  },
  "failed to start": async () => {
    failingStarts = 1;
    await expect(call("add")).rejects.toThrow("the start failed");
    await until(() => inMemory().length === 0);
    return { count: 0 };
  },
};

const OPERATIONS: Record<string, (count: number) => Promise<void>> = {
  "answers a call": async (count) => expect(await call("add")).toBe(count + 1),
  "answers a request": async (count) =>
    expect(await (await life().fetch("http://x/")).json()).toBe(count + 1),
  "rings its alarm": async (count) => {
    await call("ring");
    await until(() => rings === 1);
    expect(await call("read", "count")).toBe(count + 1);
  },
  "can be aborted": async (count) => {
    await expect(call("abort")).rejects.toMatchObject({ durableObjectReset: true });
    await until(() => inMemory().length === 0);
    expect([await call("read", "lost"), await call("add")]).toEqual([undefined, count + 1]);
  },
  "can be emptied": async () => {
    await call("deleteAll");
    expect(await call("add")).toBe(1);
  },
  "keeps what it stored over a restart of the host": async (count) => {
    await call("add");
    for (const one of gates.values()) one.resolve();
    await test.close();
    test = await openHost(folder, { Life });
    expect(await call("add")).toBe(count + 2);
  },
};

describe.each(Object.keys(STATES))("an object that %s", (state) => {
  it.each(Object.keys(OPERATIONS))("%s", async (operation) => {
    const { count, release } = (await STATES[state]?.()) ?? { count: 0 };
    await OPERATIONS[operation]?.(count);
    await release?.().catch(() => undefined);
  });
});

describe("a blocked object", () => {
  it("starts no event until the block ends, and running events continue", async () => {
    const running = call("wait", "running");
    await until(() => gates.has("running"));
    const blocked = call("block", "block");
    await until(() => gates.has("block"));
    const order: string[] = [];
    const add = call("add").then(() => order.push("add"));
    gate("running").resolve();
    expect(await running).toBe("running passed");
    order.push("running");
    gate("block").resolve();
    expect(await blocked).toBe("unblocked");
    await add;
    expect(order).toEqual(["running", "add"]);
  });

  it("whose block fails is reset: what waits receives the error, and the next call constructs it again", async () => {
    failingStarts = 1;
    const outcomes = await Promise.allSettled([call("add"), call("add")]);
    expect(outcomes.map((one) => one.status === "rejected" && (one.reason as Error).constructor)).toEqual([
      TypeError,
      TypeError,
    ]);
    await until(() => inMemory().length === 0);
    expect([await call("add"), await call("birth")]).toEqual([1, 2]);
  });
});

describe("a block that waits for its own object", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
  afterEach(() => void vi.useRealTimers());

  it.each(["transaction", "blockConcurrencyWhile"])("%s is ended, and the object is reset", async (kind) => {
    await call("add");
    const stuck = call("waitForItself", kind).catch((error: unknown) => error);
    await until(() => gates.has(kind));
    // In a transaction the call waits for its writes, otherwise for the end of the block.
    if (kind !== "transaction") await until(() => inMemory()[0]?.waitingTurns === 1);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(await stuck).toMatchObject({
      message: expect.stringContaining(`${kind}() in a Durable Object waited for too long`) as string,
    });
    expect(await call("read", "stuck")).toBe(kind === "transaction" ? undefined : kind);
    expect(await call("add")).toBe(2);
  });
});

describe("events", () => {
  it("interleave at awaits", async () => {
    const first = call("waitAndWrite", "first");
    await until(() => gates.has("first"));
    expect([await call("read", "before"), await call("add")]).toEqual(["first", 1]);
    gate("first").resolve();
    await first;
    expect(await call("read", "after")).toBe("first");
  });

  it("that run when the object is aborted fail at once, and their code can neither write nor send", async () => {
    const running = call("waitAndWrite", "running").catch((error: unknown) => error);
    await until(() => gates.has("running"));
    await expect(call("abort")).rejects.toThrow("reset for a test");
    expect(await running).toMatchObject({ message: "reset for a test", durableObjectReset: true });
    await until(() => inMemory().length === 0);
    gate("running").resolve();
    expect([await call("read", "before"), await call("read", "after")]).toEqual(["running", undefined]);
  });
});

describe("memory", () => {
  it("of the pages that only the start needed is freed once, when the object is first idle", async () => {
    const shrinks = () => statements.filter((text) => text === "PRAGMA shrink_memory").length;
    await test.close();
    test = await openHost(folder, { Life }, { onRun: (text) => statements.push(text) });
    statements.length = 0;
    const waiting = call("wait", "held");
    await until(() => gates.has("held"));
    expect(shrinks()).toBe(0);
    gate("held").resolve();
    await waiting;
    await until(() => shrinks() === 1);
    await call("add");
    await until(() => inMemory().every(({ isIdle }) => isIdle));
    expect(shrinks()).toBe(1);
  });

  it.each([
    ["an event runs", () => call("wait", "held")],
    ["background work runs", () => call("background", "held")],
    ["it is blocked", () => call("block", "held")],
  ])("is kept while %s", async (_why, begin) => {
    const begun = begin();
    await until(() => gates.has("held"));
    expect(inMemory().map(({ isIdle }) => isIdle)).toEqual([false]);
    gate("held").resolve();
    await begun;
    await evict();
    expect(inMemory()).toEqual([]);
  });

  it("is not kept by a response whose body the program reads itself", async () => {
    await expect(life().fetch("http://object/read")).rejects.toThrow(/locked/);
    await expect.poll(() => inMemory().map(({ isIdle }) => isIdle)).toEqual([true]);
  });

  it("that is left ends the object: code that outlives it receives an error", async () => {
    await call("keepFunction");
    expect(leftOver?.()).toBe(1);
    await evict();
    expect(() => leftOver?.()).toThrow("left memory at");
    expect([await call("add"), await call("birth")]).toEqual([2, 2]);
  });
});

describe("an object that has deleted everything", () => {
  const ref = () => {
    const id = String(test.env["Life"]?.idFromName(`object ${objects}`));
    return { account: "default", agent: "life", name: id };
  };

  it("is forgotten when it leaves memory, and not before", async () => {
    await call("add");
    await evict();
    expect(await test.directory.exists(ref())).toBe(true);
    await call("deleteAll");
    await evict();
    await expect.poll(() => test.directory.exists(ref())).toBe(false);
    expect(await call("add")).toBe(1);
  });

  it("is kept if it has stored something since", async () => {
    await call("deleteAll");
    await call("add");
    await evict();
    expect(await call("add")).toBe(2);
    expect(await test.directory.exists(ref())).toBe(true);
  });
});
