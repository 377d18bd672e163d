import { expect, it } from "vitest";
import { Serial, SerialByKey } from "./serial.ts";

it("work begins when all earlier work has ended, also after a failure, which only its caller receives", async () => {
  const serial = new Serial();
  const log: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = serial.run(async () => {
    await gate.promise;
    log.push("first");
    throw new Error("broken");
  });
  const second = serial.run(() => {
    log.push("second");
    return 2;
  });
  const idle = serial.idle().then(() => log.push("idle"));
  await new Promise(setImmediate);
  expect(log).toEqual([]);
  gate.resolve();
  await expect(first).rejects.toThrow("broken");
  expect(await second).toBe(2);
  await idle;
  expect(log).toEqual(["first", "second", "idle"]);
});

it("work under different keys does not wait for each other", async () => {
  const serial = new SerialByKey();
  const gate = Promise.withResolvers<void>();
  const log: string[] = [];
  const a = [
    serial.run("a", () => gate.promise.then(() => log.push("a1"))),
    serial.run("a", () => log.push("a2")),
  ];
  await serial.run("b", () => log.push("b"));
  expect(log).toEqual(["b"]);
  gate.resolve();
  await Promise.all(a);
  expect(log).toEqual(["b", "a1", "a2"]);
});
