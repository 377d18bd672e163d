/** An edge whose owner says welcome and, in the same bytes, that the session is over. */
import { expect, it } from "vitest";
import { InstanceElsewhereError } from "../../../engines/instance-store/index.ts";
import type { LinkStream } from "../../../engines/node-link/index.ts";
import type { AgentDefinition } from "../../instance/agent-definition.ts";
import type { PlacedWork } from "../../placement/placement.ts";
import { EdgeConnection } from "./edge-connection.ts";
import { EdgeGroup, type EdgeGroupParts } from "./edge-group.ts";
import { encodeWelcome } from "./hello.ts";
import { encodeCount, encodeItem, ITEM_KINDS, ItemReader } from "./socket-items.ts";
import { TestClient } from "./sockets-fixture.ts";

const REF = { account: "default", agent: "room", name: "x" };
const WELCOME = Buffer.concat(encodeWelcome({ received: 0, existed: true }));
const MOVED = Buffer.concat(encodeItem(ITEM_KINDS.moved, encodeCount(0), Buffer.from("3")));

/** Streams to owners, each of which answers with the next of `answers`. Returns the kinds of the items that each stream was sent. */
function openGroup(
  answers: readonly Buffer[],
  maxAttempts: number,
  find: () => string | Promise<string> = () => "2",
) {
  const streams: number[][] = [];
  const handlers: Parameters<LinkStream["start"]>[0][] = [];
  const openStream = (): LinkStream => {
    const kinds: number[] = [];
    const answer = answers[streams.length] ?? Buffer.alloc(0);
    streams.push(kinds);
    const reader = new ItemReader();
    const stream = {
      start: (handler: Parameters<LinkStream["start"]>[0]) => {
        handlers.push(handler);
        setImmediate(() => handler.onData(answer));
      },
      write: (bytes: Buffer) => {
        for (const { kind } of reader.push(bytes)) kinds.push(kind);
      },
      end: () => undefined,
      reset: () => undefined,
    };
    return stream as unknown as LinkStream;
  };
  const reach = async <T>({ there }: PlacedWork<T>): Promise<T> => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await there("2");
      } catch (error) {
        if (!(error instanceof InstanceElsewhereError) || attempt === maxAttempts) throw error;
      }
    }
  };
  const parts = {
    network: { linkTo: () => ({ openStream }), members: [], self: "1" },
    placement: { reach, find, learn: () => undefined },
    logger: { error: () => undefined, debug: () => undefined },
    maxBrokenMs: 400,
    onEmpty: () => undefined,
  } as unknown as EdgeGroupParts;
  return { group: new EdgeGroup(parts, {} as AgentDefinition, REF), streams, handlers };
}

function connect(group: EdgeGroup): TestClient {
  return new TestClient((socket) => {
    const accepted = { definition: {} as AgentDefinition, ref: REF, id: "a", uri: "/", isReadonly: false };
    const context = { request: new Request("http://localhost/"), props: {} };
    const connection = new EdgeConnection(1, accepted, socket, context, group);
    group.add(connection);
    return connection;
  });
}

it("is opened at the next owner if the first one moves the instance with its welcome", async () => {
  const { group, streams } = openGroup([Buffer.concat([WELCOME, MOVED]), WELCOME], 3);
  connect(group);
  await expect.poll(() => streams[1]).toEqual([ITEM_KINDS.open]);
  expect(streams[0]).toEqual([]);
});

it("a look-up that fails, and whose answer nobody waits for any more, is no uncaught error", async () => {
  const uncaught: unknown[] = [];
  const note = (error: unknown) => void uncaught.push(error);
  process.on("unhandledRejection", note);
  try {
    const { group, streams } = openGroup([WELCOME], 1, () => Promise.reject(new Error("PostgreSQL is away")));
    connect(group);
    await expect.poll(() => streams[0]).toEqual([ITEM_KINDS.open]);
    expect(uncaught).toEqual([]);
  } finally {
    process.off("unhandledRejection", note);
  }
});

/** As a pause of the process: all timers are late. */
function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

it("a pause of this process does not use up the time that a broken link has; the time awake does", async () => {
  const { group, streams, handlers } = openGroup([WELCOME], 1);
  const client = connect(group);
  await expect.poll(() => streams[0]).toEqual([ITEM_KINDS.open]);
  handlers[0]?.onFailure({ code: "broken", message: "the node does not respond" });
  pause(1000);
  // The first attempt to continue opens a stream, which is not answered.
  await expect.poll(() => streams.length).toBe(2);
  expect(client.closeCode).toBeNull();
  await expect.poll(() => client.closeCode).toBe(1013);
});
