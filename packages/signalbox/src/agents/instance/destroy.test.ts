/** Events that arrive while an instance is destroyed: at every moment they reach either the old instance or a new one without the old data. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { waitUntil } from "../../../../../test/support/wait-until.ts";
import type { ObjectContext } from "../objects/object-context.ts";
import { openHost, type TestHost } from "../objects/object-host-fixture.ts";
import { DurableObject } from "../objects/workers-module.ts";
import type { InstanceRef } from "./instance-ref.ts";

class Counter extends DurableObject {
  declare readonly ctx: ObjectContext;

  add(by: number): number {
    const count = Number(this.ctx.storage.kv.get("count") ?? 0) + by;
    this.ctx.storage.kv.put("count", count);
    return count;
  }
}

type CounterStub = { add(by: number): Promise<number> };

let folder: string;
let test: TestHost;
/** Databases close when it is resolved. */
let closing: Promise<void> = Promise.resolve();
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-destroy-"));
  closing = Promise.resolve();
  test = await openHost(folder, { Counter }, { beforeClose: () => closing });
});
afterEach(async () => {
  await test.close();
  await rm(folder, { recursive: true, force: true });
});

const counter = () => test.env["Counter"]?.getByName("x") as unknown as CounterStub;
const ref = () => test.host.named("counter", "x") as InstanceRef;

it("an event between the end of the instance and the end of its file starts a new one, and what it writes is kept", async () => {
  expect(await counter().add(1)).toBe(1);
  const gate = Promise.withResolvers<void>();
  closing = gate.promise;
  const destroyed = test.directory.destroy(ref());
  await waitUntil(
    () => test.directory.find(ref()),
    (instance) => instance === undefined,
  );
  const answered = counter().add(10);
  gate.resolve();
  expect(await answered).toBe(10);
  await destroyed;
  // It leaves memory and comes back from its file.
  await test.directory.endAll("counter", new Error("ended by the test"));
  expect(await counter().add(100)).toBe(110);
});

it("two destructions at the same time remove one instance, and the next event creates another", async () => {
  expect(await counter().add(1)).toBe(1);
  await Promise.all([test.directory.destroy(ref()), test.directory.destroy(ref())]);
  expect(await counter().add(10)).toBe(10);
  const [first, , third] = await Promise.allSettled([
    test.directory.destroy(ref()),
    counter().add(100),
    test.directory.destroy(ref()),
  ]);
  expect([first.status, third.status]).toEqual(["fulfilled", "fulfilled"]);
  expect(await counter().add(1000)).toBe(1000);
});
