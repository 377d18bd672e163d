import { SignalboxError } from "@signalbox/protocol";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createLogger } from "../../telemetry/logger.ts";
import { type Departure, Departures } from "./departures.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("closed connections wait a minute for an instance that can be opened, then they are counted and logged", async () => {
  const lines: Record<string, unknown>[] = [];
  let lost = 0;
  let attempts = 0;
  const departures = new Departures({
    directory: {
      find: () => undefined,
      get: () => {
        attempts += 1;
        throw new SignalboxError("overloaded");
      },
    },
    logger: createLogger({
      level: "warn",
      isPretty: false,
      destination: { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
    }),
    lost: { add: (count) => (lost += count) },
  });
  const departure = {
    definition: { kebab: "a", hasCloseHook: true },
    account: "default",
    name: "x",
    connection: { isJoined: true, id: "c" },
    code: 1006,
    reason: "",
  } as unknown as Departure;
  for (let i = 0; i < 1000; i++) departures.add(departure);

  await vi.advanceTimersByTimeAsync(59_000);
  // One attempt at a time, however many wait.
  expect([lost, attempts <= 600, lines]).toEqual([0, true, []]);
  await vi.advanceTimersByTimeAsync(2000);
  expect(lost).toBe(1000);
  expect(lines).toMatchObject([{ level: "warn", msg: "onClose did not run for closed connections" }]);
  departures.stop();
});
