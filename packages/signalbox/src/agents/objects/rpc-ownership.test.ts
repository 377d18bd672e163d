/** Who owns what in a call: stubs, errors, and how large its values may be. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { ObjectContext } from "./object-context.ts";
import { openHost, type TestHost } from "./object-host-fixture.ts";
import { DurableObject, RpcStub, RpcTarget } from "./workers-module.ts";

type Callback = ((value: number) => Promise<number>) & { dup(): Callback } & Disposable;

class Keeper extends DurableObject {
  declare readonly ctx: ObjectContext;
  kept: Callback | null = null;

  async keep(callback: Callback, mode: "as it is" | "duplicated"): Promise<number> {
    this.kept = mode === "duplicated" ? callback.dup() : callback;
    return callback(1);
  }

  async use(): Promise<number> {
    return this.kept === null ? 0 : this.kept(2);
  }

  async drop(): Promise<void> {
    this.kept?.[Symbol.dispose]();
  }

  async back(callback: Callback): Promise<Callback> {
    return callback;
  }

  async kindOf(value: unknown): Promise<string> {
    return typeof value;
  }

  async fail(): Promise<never> {
    throw Object.assign(new TypeError("failed", { cause: new RangeError("below") }), {
      code: "E_BUSY",
      details: { tries: 3 },
      callback: () => 1,
    });
  }

  async echo(value: unknown): Promise<unknown> {
    return value;
  }

  async large(bytes: number): Promise<string> {
    return "x".repeat(bytes);
  }

  async signalled(signal: AbortSignal, onAbort: (reason: string) => Promise<void>): Promise<void> {
    if (!signal.aborted)
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    await onAbort(String(signal.reason));
  }

  async pass(signal: AbortSignal, onAbort: (reason: string) => Promise<void>): Promise<void> {
    const { Keeper: namespace } = this.env as { readonly Keeper: { getByName(name: string): Keeper } };
    await namespace.getByName("other").signalled(signal, onAbort);
  }
}

class Target extends RpcTarget {
  disposals = 0;

  add(value: number): number {
    return value + 1;
  }

  [Symbol.dispose](): void {
    this.disposals += 1;
  }
}

let folder: string;
let test: TestHost;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-ownership-"));
  test = await openHost(folder, { Keeper });
});
afterEach(async () => {
  await test.close();
  await rm(folder, { recursive: true, force: true });
});

const keeper = () => test.env["Keeper"]?.getByName("a") as unknown as Keeper;
const doubled = (async (value: number) => value * 2) as unknown as Callback;

it("ends the stubs in the arguments of a call with the call, unless the callee has duplicated them", async () => {
  expect(await keeper().keep(doubled, "as it is")).toBe(2);
  await expect(keeper().use()).rejects.toThrow("RPC stub used after being disposed.");
  expect(await keeper().keep(doubled, "duplicated")).toBe(2);
  expect(await keeper().use()).toBe(4);
});

it("disposes a target when the last stub of it has ended", async () => {
  const target = new Target();
  expect(await keeper().kindOf(target)).toBe("function");
  expect(target.disposals).toBe(1);
  const kept = new Target() as unknown as Callback & Target;
  await keeper()
    .keep(kept, "duplicated")
    .catch(() => undefined);
  expect(kept.disposals).toBe(0);
  await keeper().drop();
  expect(kept.disposals).toBe(1);
});

it("disposes the target of a stub that the program has made, and not before", async () => {
  const target = new Target();
  const stub = new RpcStub(target) as unknown as Disposable;
  const duplicate = (stub as unknown as Callback).dup();
  await keeper().kindOf(stub);
  stub[Symbol.dispose]();
  await Promise.resolve();
  expect(target.disposals).toBe(0);
  duplicate[Symbol.dispose]();
  await Promise.resolve();
  expect(target.disposals).toBe(1);
});

it("lends duplicates of a target that can duplicate itself", async () => {
  const duplicates: Target[] = [];
  class Lasting extends Target {
    dup(): Target {
      const duplicate = new Target();
      duplicates.push(duplicate);
      return duplicate;
    }
  }
  const target = new Lasting();
  await keeper().kindOf(target);
  await keeper().kindOf(new Proxy(target, {}));
  expect(duplicates.map(({ disposals }) => disposals)).toEqual([1, 1]);
  expect(target.disposals).toBe(0);
});

it("returns a stub that was an argument, as one of the caller's own", async () => {
  const back = await keeper().back(doubled);
  expect(await back(4)).toBe(8);
  back[Symbol.dispose]();
  await expect(back(4)).rejects.toThrow("RPC stub used after being disposed.");
  expect(() => back.dup()).toThrow("RPC stub used after being disposed.");
});

it("keeps the own properties and the cause of an error", async () => {
  const thrown = (await keeper()
    .fail()
    .catch((error: unknown) => error)) as TypeError & Record<string, unknown>;
  expect(thrown).toBeInstanceOf(TypeError);
  expect(thrown).toMatchObject({ code: "E_BUSY", details: { tries: 3 }, remote: true });
  expect(thrown["callback"]).toBeUndefined();
  expect(thrown.cause).toBeInstanceOf(RangeError);
  const passed = await keeper().echo(Object.assign(new Error("a value"), { code: 7 }));
  expect(passed).toMatchObject({ message: "a value", code: 7 });
});

it("calls the members of a target through a proxy around it", async () => {
  const target = new Proxy(new Target(), {
    get: (inner, name) =>
      name === "add" ? (value: number) => inner.add(value) + 100 : (Reflect.get(inner, name) as unknown),
  });
  const echoed = (await keeper().echo(target)) as { add(value: number): Promise<number> };
  expect(await echoed.add(23)).toBe(124);
});

it("refuses arguments and results of more than 32 MiB", async () => {
  const bytes = 32 * 1024 * 1024 + 1;
  await expect(keeper().large(bytes)).rejects.toThrow("limited to 32MiB");
  await expect(keeper().echo(new Uint8Array(bytes))).rejects.toThrow("limited to 32MiB");
  expect(((await keeper().echo(new Uint8Array(1000))) as Uint8Array).length).toBe(1000);
});

it("passes a signal on from one object to another", async () => {
  const controller = new AbortController();
  const reasons: string[] = [];
  const called = keeper().pass(controller.signal, async (reason) => void reasons.push(reason));
  await keeper().use();
  controller.abort("enough");
  await called;
  expect(reasons).toEqual(["enough"]);
});
