import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { waitUntil } from "../../../../../test/support/wait-until.ts";
import type { ObjectContext } from "./object-context.ts";
import { openHost, type TestHost } from "./object-host-fixture.ts";
import type { FacetStart } from "./object-facets.ts";
import { DurableObject } from "./workers-module.ts";

let starts = 0;
let isWaiting = false;

class Child extends DurableObject {
  declare readonly ctx: ObjectContext;

  add(): number {
    const count = Number(this.ctx.storage.kv.get("count") ?? 0) + 1;
    this.ctx.storage.kv.put("count", count);
    return count;
  }

  identity(): unknown {
    return [this.ctx.id.name, String(this.ctx.id), this.ctx.props];
  }

  async ring(): Promise<void> {
    await this.ctx.storage.setAlarm(Date.now());
  }

  alarm(): void {}

  async grandchild(): Promise<unknown> {
    const facet = this.ctx.facets.get("nested", () => ({ class: this.ctx.exports["Child"] }));
    return (facet as unknown as { add(): Promise<number> }).add();
  }

  waitForEver(): Promise<never> {
    isWaiting = true;
    return new Promise(() => undefined);
  }
}

class Parent extends DurableObject {
  declare readonly ctx: ObjectContext;

  #child(options: Partial<FacetStart> = {}): Record<string, () => Promise<unknown>> {
    return this.ctx.facets.get("child\0one", () => {
      starts += 1;
      return { class: Child, ...options };
    }) as unknown as Record<string, () => Promise<unknown>>;
  }

  async call(method: string, options?: Partial<FacetStart>): Promise<unknown> {
    return this.#child(options)[method]?.();
  }

  abortChild(reason: string): void {
    this.ctx.facets.abort("child\0one", new Error(reason));
  }

  async deleteChild(): Promise<void> {
    await this.ctx.facets.delete("child\0one");
  }

  fail(): Promise<unknown> {
    return (
      this.ctx.facets.get("none", () => ({ class: 5 })) as unknown as { add(): Promise<unknown> }
    ).add();
  }
}

let folder: string;
let test: TestHost;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-facets-"));
  test = await openHost(folder, { Parent, Child });
});
afterAll(async () => {
  await test.close();
  await rm(folder, { recursive: true, force: true });
});

type Calls = Record<string, (...args: unknown[]) => Promise<unknown>>;
const parent = (name: string) => {
  const stub = test.env["Parent"]?.getByName(name) as unknown as Calls;
  return (method: string, ...args: unknown[]) => stub[method]?.(...args);
};

describe("a facet", () => {
  it("has storage of its own, which survives its end and a restart, and is started when it is not in memory", async () => {
    const one = parent("one");
    starts = 0;
    expect([await one("call", "add"), await one("call", "add"), starts]).toEqual([1, 2, 1]);
    expect(await parent("two")("call", "add")).toBe(1);
    await one("abortChild", "enough");
    await test.close();
    test = await openHost(folder, { Parent, Child });
    expect(await parent("one")("call", "add")).toBe(3);
  });

  it("fails its callers when it is aborted", async () => {
    const three = parent("three");
    await three("call", "add");
    const waiting = three("call", "waitForEver")?.catch((error: unknown) => error);
    await waitUntil(
      () => isWaiting,
      (hasBegun) => hasBegun,
    );
    await three("abortChild", "enough");
    expect(await waiting).toMatchObject({ message: "enough" });
    expect(await three("call", "add")).toBe(2);
  });

  it("has the id that it was started with, or that of its parent, and its own props", async () => {
    const parentId = test.env["Parent"]?.idFromName("four");
    expect(await parent("four")("call", "identity")).toEqual(["four", String(parentId), {}]);
    const other = { id: "chosen", props: { role: "x" } };
    expect(await parent("five")("call", "identity", other)).toEqual([undefined, "chosen", { role: "x" }]);
  });

  it("is removed with everything below it", async () => {
    const six = parent("six");
    await six("call", "add");
    expect([await six("call", "grandchild"), await six("call", "grandchild")]).toEqual([1, 2]);
    await six("deleteChild");
    expect([await six("call", "add"), await six("call", "grandchild")]).toEqual([1, 1]);
  });

  it("has no alarm, and needs a class of objects", async () => {
    const seven = parent("seven");
    await expect(seven("call", "ring")).rejects.toThrow("Facets currently cannot set alarms.");
    await expect(seven("fail")).rejects.toThrow("a class that extends DurableObject");
  });
});
