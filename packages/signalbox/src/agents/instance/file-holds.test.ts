import { beforeEach, describe, expect, it } from "vitest";
import { createLogger } from "../../telemetry/logger.ts";
import { FileHolds } from "./file-holds.ts";

const nextLoop = () => new Promise((resolve) => setImmediate(resolve));

let logged: unknown[];
let holds: FileHolds;
beforeEach(() => {
  logged = [];
  const logger = createLogger({ level: "silent", isPretty: false });
  Object.assign(logger, { error: ({ err }: { err: unknown }) => logged.push(err) });
  holds = new FileHolds(logger);
});

/** Whether the promise has settled by now. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let isOver = false;
  const over = () => (isOver = true);
  promise.then(over, over);
  await nextLoop();
  return isOver;
}

describe("a file", () => {
  it("is free until it is held, and free again when the hold has ended", async () => {
    expect(holds.find("x")).toBeUndefined();
    await holds.whenFree("x", 10);
    const use = Promise.withResolvers<void>();
    holds.hold("x", use.promise);
    expect(holds.isFree).toBe(false);
    expect(holds.find("y")).toBeUndefined();
    const free = holds.whenFree("x", 10);
    expect(await isSettled(free)).toBe(false);
    use.resolve();
    await free;
    expect(holds.find("x")).toBeUndefined();
    expect(holds.isFree).toBe(true);
  });

  it("is free after a use that failed, and the failure is logged", async () => {
    const failure = new Error("cannot close");
    holds.hold("x", Promise.reject(failure));
    await holds.whenFree("x", 10);
    expect(holds.isFree).toBe(true);
    expect(logged).toEqual([failure]);
  });

  it("whose hold is replaced while something waits for it is not free before the second hold has ended", async () => {
    const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    holds.hold("x", first.promise);
    const free = holds.whenFree("x", 10);
    holds.hold(
      "x",
      first.promise.then(() => second.promise),
    );
    first.resolve();
    expect(await isSettled(free)).toBe(false);
    second.resolve();
    await free;
  });

  it("stays held by the later of two uses when the earlier one ends", async () => {
    const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    holds.hold("x", first.promise);
    holds.hold("x", second.promise);
    first.resolve();
    await nextLoop();
    expect(holds.find("x")).toBeDefined();
    second.resolve();
    await holds.whenAllFree();
    expect(holds.find("x")).toBeUndefined();
  });
});

it("a free file waits while more files are held than may be", async () => {
  const uses = ["a", "b", "c"].map((key) => ({ key, use: Promise.withResolvers<void>() }));
  for (const { key, use } of uses) holds.hold(key, use.promise);
  const free = holds.whenFree("x", 1);
  uses[0]?.use.resolve();
  expect(await isSettled(free)).toBe(false);
  uses[1]?.use.resolve();
  await free;
  expect(holds.isFree).toBe(false);
  uses[2]?.use.resolve();
  await holds.whenAllFree();
});
