/** What leaves an object for another node waits until the object's writes are durable. */
import { afterEach, expect, test } from "vitest";
import type { ObjectContext } from "../../objects/object-context.ts";
import type { ObjectNamespace } from "../../objects/object-types.ts";
import { DurableObject } from "../../objects/workers-module.ts";
import { openTwoNodes, type TwoNodes } from "./two-nodes-fixture.ts";

const LOG: string[] = [];

interface Env {
  readonly Room: ObjectNamespace;
}

interface RoomStub {
  told(text: string): Promise<void>;
  remember(text: string): Promise<string>;
  later(callback: (text: string) => void): Promise<void>;
}

/** On the first node. */
class Desk extends DurableObject<Env> {
  declare readonly ctx: ObjectContext;

  async writeAndTell(): Promise<void> {
    const room = this.env.Room.getByName("a") as unknown as RoomStub;
    await room.told("before");
    this.ctx.storage.kv.put("x", 1);
    await room.told("after");
  }
}

/** On the second node. */
class Room extends DurableObject<Env> {
  declare readonly ctx: ObjectContext;

  told(text: string): void {
    LOG.push(text);
  }

  remember(text: string): string {
    this.ctx.storage.kv.put("text", text);
    return text;
  }

  async later(callback: (text: string) => Promise<void>): Promise<void> {
    await callback("before");
    this.ctx.storage.kv.put("y", 1);
    await callback("after");
  }
}

let nodes: TwoNodes;
afterEach(() => nodes.close());

const roomStub = () => nodes.env["Room"]?.getByName("a") as unknown as RoomStub;
const deskStub = () => nodes.env["Desk"]?.getByName("a") as unknown as Desk;

/** Syncs wait for the returned function. */
async function open(): Promise<() => void> {
  LOG.length = 0;
  const gate = Promise.withResolvers<void>();
  let isOpen = true;
  const beforeSync = async () => {
    if (!isOpen) {
      LOG.push("sync");
      await gate.promise;
    }
  };
  nodes = await openTwoNodes({ Desk, Room }, { beforeSync });
  nodes.ownerOf = (agent) => (agent === "desk" ? "1" : "2");
  // The creation of the objects is not what waits.
  await roomStub().told("made");
  await deskStub().writeAndTell();
  LOG.length = 0;
  isOpen = false;
  return () => {
    LOG.push("durable");
    gate.resolve();
  };
}

test("a call of an object on another node leaves when the caller's writes are durable", async () => {
  const release = await open();
  const done = deskStub().writeAndTell();
  await expect.poll(() => LOG).toEqual(["before", "sync"]);
  release();
  await done;
  expect(LOG.slice(0, 4)).toEqual(["before", "sync", "durable", "after"]);
});

test("so do a result, and a call of a function of another node", async () => {
  const release = await open();
  const room = roomStub();
  const remembered = room.remember("it").then(() => LOG.push("answered"));
  await expect.poll(() => LOG).toEqual(["sync"]);
  const later = room.later((text) => void LOG.push(text));
  release();
  await Promise.all([remembered, later]);
  expect(LOG.slice(0, 2)).toEqual(["sync", "durable"]);
  expect(LOG.slice(2)).toEqual(expect.arrayContaining(["answered", "before", "after"]));
});
