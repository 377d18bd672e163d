/**
 * `vitest` for test files that run inside of a worker program on Signalbox: the matchers and spies are those of the packages `@vitest/expect` and `@vitest/spy` that are installed beside
 * the tests; this file collects and runs. What would stop the server's own clock or replace its modules is refused as not portable.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import {
  ASYMMETRIC_MATCHERS_OBJECT,
  getState,
  JestAsymmetricMatchers,
  JestChaiExpect,
  JestExtend,
  setState,
} from "@vitest/expect";
import * as spies from "@vitest/spy";
import * as chai from "chai";

export class NotPortable extends Error {
  name = "NotPortable";
}

export const refuse = (what) => () => {
  throw new NotPortable(what);
};

// ── Matchers ──

for (const plugin of [JestExtend, JestChaiExpect, JestAsymmetricMatchers]) chai.use(plugin);

export function expect(value, message) {
  setState({ assertionCalls: (getState(expect)?.assertionCalls ?? 0) + 1 }, expect);
  return chai.expect(value, message);
}

Object.assign(expect, chai.expect, globalThis[ASYMMETRIC_MATCHERS_OBJECT], {
  soft: expect,
  extend: (matchers) => chai.expect.extend(expect, matchers),
  getState: () => getState(expect),
  unreachable: (message) => chai.assert.fail(message ?? "this code must not be reached"),
  assertions: (count) => setState({ expectedAssertionsNumber: count }, expect),
  hasAssertions: () => setState({ isExpectingAssertions: true }, expect),
  poll: (read, options) => polled(read, options, []),
});
Object.defineProperty(globalThis, Symbol.for("$$jest-expect"), { value: expect, configurable: true });

/** Every property leads to a matcher; its call is repeated until it holds. */
function polled(read, options, path) {
  return new Proxy(() => undefined, {
    get: (_target, name) => polled(read, options, [...path, name]),
    apply: (_target, _this, args) =>
      until(async () => {
        const holder = path.slice(0, -1).reduce((value, name) => value[name], expect(await read()));
        return holder[path.at(-1)](...args);
      }, options),
  });
}

/** The result of the function, when it throws no more. */
async function until(work, { timeout = 1000, interval = 50 } = {}) {
  for (const end = Date.now() + timeout; ;) {
    try {
      return await work();
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, interval));
    }
  }
}

// ── Spies ──

const replaced = [];
const timed = (options) => (typeof options === "number" ? { timeout: options } : options);

export const vi = {
  fn: spies.fn,
  isMockFunction: spies.isMockFunction,
  clearAllMocks: spies.clearAllMocks,
  resetAllMocks: spies.resetAllMocks,
  restoreAllMocks: spies.restoreAllMocks,
  mocked: (value) => value,
  hoisted: (work) => work(),
  spyOn(target, ...rest) {
    if (target?.[Symbol.toStringTag] === "Module") throw new NotPortable("a spy on a module");
    return spies.spyOn(target, ...rest);
  },
  waitFor: (work, options) => until(work, timed(options)),
  waitUntil: (work, options) =>
    until(async () => {
      const value = await work();
      if (!value) throw new Error("the condition did not become true");
      return value;
    }, timed(options)),
  stubGlobal(name, value) {
    replaced.push([name, Object.getOwnPropertyDescriptor(globalThis, name)]);
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
    return vi;
  },
  unstubAllGlobals() {
    for (const [name, before] of replaced.splice(0).toReversed())
      if (before === undefined) delete globalThis[name];
      else Object.defineProperty(globalThis, name, before);
  },
  useRealTimers: () => vi,
  ...Object.fromEntries(
    [
      "useFakeTimers",
      "setSystemTime",
      "advanceTimersByTime",
      "advanceTimersByTimeAsync",
      "runAllTimers",
      "runAllTimersAsync",
    ].map((name) => [name, refuse("a clock that the test sets")]),
  ),
  ...Object.fromEntries(
    ["mock", "doMock", "resetModules"].map((name) => [name, refuse("a module that the test replaces")]),
  ),
};

// ── Collecting ──

let suite;
const newSuite = (name, parent, isSkipped) => ({
  name,
  isSkipped: isSkipped || parent?.isSkipped === true,
  items: [],
  beforeAll: [],
  afterAll: [],
  beforeEach: [...(parent?.beforeEach ?? [])],
  afterEach: [...(parent?.afterEach ?? [])],
});
const hook = (kind) => (work) => void suite[kind].push(work);

export const beforeAll = hook("beforeAll");
export const afterAll = hook("afterAll");
export const beforeEach = hook("beforeEach");
export const afterEach = hook("afterEach");

/** A function that adds tests or suites, with the variants that programs use. */
function adding(add) {
  const plain = (name, ...rest) => add(textOf(name), optionsOf(rest), false);
  const skipped = (name, ...rest) => add(textOf(name), optionsOf(rest), true);
  return Object.assign(plain, {
    skip: skipped,
    todo: skipped,
    only: plain,
    concurrent: plain,
    sequential: plain,
    skipIf: (condition) => (condition ? skipped : plain),
    runIf: (condition) => (condition ? plain : skipped),
    each:
      (rows) =>
      (name, ...rest) => {
        const { work, timeout } = optionsOf(rest);
        for (const row of rows) {
          const values = Array.isArray(row) ? row : [row];
          add(filled(name, values), { work: () => work(...values), timeout }, false);
        }
      },
    for:
      (rows) =>
      (name, ...rest) => {
        const { work, timeout } = optionsOf(rest);
        for (const row of rows)
          add(filled(name, [row].flat()), { work: () => work(row, { expect }), timeout }, false);
      },
  });
}

const textOf = (name) => (typeof name === "function" ? name.name : String(name));

function optionsOf(rest) {
  const options = rest.find((value) => typeof value !== "function");
  return {
    work: rest.find((value) => typeof value === "function") ?? (() => undefined),
    timeout: typeof options === "number" ? options : options?.timeout,
  };
}

function filled(name, values) {
  let next = 0;
  return textOf(name)
    .replaceAll(/%[sdifjo]/g, () => String(values[next++]))
    .replaceAll(/\$(\w+)/g, (text, key) => String(values[0]?.[key] ?? text));
}

export const describe = adding((name, { work }, isSkipped) => {
  const parent = suite;
  suite = newSuite(name, parent, isSkipped);
  parent.items.push({ suite });
  work();
  suite = parent;
});
export const it = adding((name, { work, timeout }, isSkipped) =>
  suite.items.push({ name, work, timeout, isSkipped: isSkipped || suite.isSkipped }),
);
export const test = it;
const finishing = new AsyncLocalStorage();
export const onTestFinished = (work) => void finishing.getStore()?.push(work);
export const expectTypeOf = () => new Proxy(() => expectTypeOf(), { get: () => expectTypeOf() });
export const { assert } = chai;

// ── Running ──

const DEFAULT_TIMEOUT_MS = 10_000;

/** Imports a test file and runs it; each outcome is reported when it is known. */
export async function runFile(url, report) {
  suite = newSuite("", undefined, false);
  const root = suite;
  await import(url);
  await runSuite(root, [], report);
}

async function runSuite(one, path, report) {
  let failure = await failureOf(async () => {
    for (const work of one.beforeAll) await limited(() => work(), 60_000);
  });
  for (const item of one.items) {
    if (item.suite !== undefined) {
      await runSuite(item.suite, [...path, item.suite.name], report);
      continue;
    }
    const name = [...path, item.name].join(" > ");
    if (item.isSkipped) report({ name, outcome: "skipped" });
    else report({ name, ...outcomeOf(failure ?? (await runTest(one, item, name))) });
  }
  failure = await failureOf(async () => {
    for (const work of one.afterAll.toReversed()) await limited(() => work(), 30_000);
  });
}

async function runTest(one, { work, timeout = DEFAULT_TIMEOUT_MS }, name) {
  setState(
    {
      assertionCalls: 0,
      expectedAssertionsNumber: null,
      isExpectingAssertions: false,
      currentTestName: name,
      testPath: "",
    },
    expect,
  );
  const last = [];
  const context = {
    expect,
    onTestFinished: (done) => void last.push(done),
    skip: refuse("a test that skips itself"),
    task: { name },
  };
  const failure = await failureOf(async () => {
    for (const before of one.beforeEach) await limited(() => before(context), 30_000);
    await finishing.run(last, () => limited(() => work(context), timeout));
    const { assertionCalls, expectedAssertionsNumber } = getState(expect);
    if (typeof expectedAssertionsNumber === "number" && assertionCalls !== expectedAssertionsNumber)
      throw new Error(`${expectedAssertionsNumber} assertions were expected, ${assertionCalls} were made`);
  });
  const after = await failureOf(async () => {
    for (const clean of [...last, ...one.afterEach.toReversed()]) await limited(() => clean(context), 30_000);
  });
  return failure ?? after;
}

function outcomeOf(failure) {
  if (failure === null) return { outcome: "passed" };
  const { error } = failure;
  const reason = String(error?.message ?? error).split("\n")[0];
  return { outcome: error instanceof NotPortable ? "not portable" : "failed", reason };
}

async function failureOf(work) {
  try {
    await work();
    return null;
  } catch (error) {
    return { error };
  }
}

async function limited(work, timeoutMs) {
  let timer;
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    return await Promise.race([(async () => work())(), late]);
  } finally {
    clearTimeout(timer);
  }
}
