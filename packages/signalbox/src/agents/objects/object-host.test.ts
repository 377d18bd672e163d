import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openHost, type TestHost } from "./object-host-fixture.ts";
import type { ObjectContext } from "./object-context.ts";
import { DurableObject, RpcTarget } from "./workers-module.ts";

class Counter extends DurableObject<Record<string, never>> {
  declare readonly ctx: ObjectContext;
  hidden = 1;

  async add(by: number): Promise<number> {
    const count = ((await this.ctx.storage.get("count")) as number | undefined) ?? 0;
    await this.ctx.storage.put("count", count + by);
    return count + by;
  }

  get total(): number {
    return (this.ctx.storage.kv.get("count") as number | undefined) ?? 0;
  }

  identity(): [string | undefined, string] {
    return [this.ctx.id.name, this.ctx.id.toString()];
  }

  writeAndThrow(): never {
    this.ctx.storage.kv.put("count", 41);
    throw new TypeError("refused");
  }

  throwOwn(): never {
    class OwnError extends Error {
      override readonly name = "OwnError";
    }
    throw new OwnError("boom");
  }

  counter(): RpcTarget {
    const { storage } = this.ctx;
    return new (class extends RpcTarget {
      read() {
        return storage.kv.get("count");
      }
    })();
  }

  callBack(callback: (value: number) => Promise<number>): Promise<number> {
    return callback(20);
  }

  echo(value: unknown): unknown {
    return value;
  }

  async fetch(request: Request): Promise<Response> {
    return new Response(`${request.method} ${await request.text()}`, { status: 201 });
  }
}

class Plain {
  readonly a = 1;
}

let folder: string;
let test: TestHost;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-objects-"));
  test = await openHost(folder, { Counter });
});
afterEach(async () => {
  await test.close();
  await rm(folder, { recursive: true, force: true });
});

// Members of a stub are typed by programs; tests call what they know.
type Calls = Record<string, (...args: unknown[]) => Promise<unknown>> & { fetch: typeof fetch };
const counter = (name = "a") => test.env["Counter"]?.getByName(name) as unknown as Calls;
const call = (method: string, ...args: unknown[]) => counter()[method]?.(...args);

describe("a stub", () => {
  it("calls methods, whose writes survive a restart", async () => {
    expect(await call("add", 2)).toBe(2);
    expect(await call("add", 3)).toBe(5);
    await test.close();
    test = await openHost(folder, { Counter });
    expect(await call("add", 1)).toBe(6);
  });

  it("reads getters, and neither fields nor what the class does not have", async () => {
    await call("add", 2);
    expect(await (counter() as unknown as { total: Promise<number> }).total).toBe(2);
    await expect(call("hidden")).rejects.toThrow('The RPC receiver does not implement the method "hidden".');
    await expect(call("missing")).rejects.toThrow(TypeError);
    await expect(call("alarm")).rejects.toThrow("reserved");
  });

  it("keeps what a method wrote that throws, and the class and message of its error", async () => {
    const error = await call("writeAndThrow")?.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ message: "refused", remote: true });
    expect(await call("add", 1)).toBe(42);
    await expect(call("throwOwn")).rejects.toMatchObject({ name: "OwnError", message: "boom" });
  });

  it("passes requests and responses", async () => {
    const response = await counter().fetch("http://x/path", { method: "POST", body: "hello" });
    expect([response.status, await response.text()]).toEqual([201, "POST hello"]);
  });

  it("copies values, passes functions and RpcTargets by reference, and calls results before they arrive", async () => {
    const value = { a: [1, new Date(0)], m: new Map([["k", new Set([1n])]]), b: new Uint8Array([1, 2]) };
    const copy = await call("echo", value);
    expect(copy).toEqual(value);
    expect(copy).not.toBe(value);
    expect(await call("callBack", (n: number) => n + 1)).toBe(21);
    await call("add", 7);
    const target = counter()["counter"]?.() as unknown as { read(): Promise<number> };
    expect(await target.read()).toBe(7);
    await expect(call("echo", new Plain())).rejects.toThrow('Could not serialize object of type "Plain"');
  });

  it("has an id that finds the same object", async () => {
    const namespace = test.env["Counter"];
    const id = namespace?.idFromName("a");
    const again = namespace?.idFromString(String(id));
    expect([id?.name, again?.name, id?.equals(again as never)]).toEqual(["a", undefined, true]);
    await call("add", 9);
    const stub = namespace?.get(again as never) as unknown as Calls;
    expect(await stub["add"]?.(1)).toBe(10);
    expect(await call("identity")).toEqual(["a", String(id)]);
    expect(() => namespace?.idFromString("0".repeat(64))).toThrow("not valid for this namespace");
    expect(() => namespace?.idFromString("abc")).toThrow("must be 64 hex digits");
  });
});
