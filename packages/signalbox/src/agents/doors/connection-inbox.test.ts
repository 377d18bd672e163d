import { expect, it } from "vitest";
import type { ConnectionFacts, ConnectionSocket } from "../connections/connection-socket.ts";
import { SocketHub } from "../connections/socket-hub.ts";
import { InstanceElsewhereError } from "../../engines/instance-store/index.ts";
import type { AgentDefinition } from "../instance/agent-definition.ts";
import type { Directory } from "../instance/directory.ts";
import { ConnectionInbox } from "./connection-inbox.ts";
import type { Departures } from "./departures.ts";

const FACTS: ConnectionFacts = {
  tags: ["c"],
  state: null,
  attachment: null,
  isReadonlyForAgent: false,
  hasProtocol: true,
  joinedAt: 1,
};
const SOCKET: ConnectionSocket = {
  write: () => undefined,
  close: () => undefined,
  isClosed: false,
  readyState: 1,
  bufferedAmount: 0,
};

/** The instance at this node, as often as it comes: turns wait until `work` runs them, or `leave` ends them. */
class Stay {
  readonly ran: string[] = [];
  readonly #waiting: { label: string; run: () => void; fail: (error: unknown) => void }[] = [];

  run({ cause, body }: { cause?: { message: string }; body: (live: object) => unknown }): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const run = () => {
        this.ran.push(cause?.message ?? "");
        resolve(body({ agent: { onMessage: () => undefined } }));
      };
      this.#waiting.push({ label: "", run, fail: reject });
    });
  }

  work(count = Infinity) {
    for (const { run } of this.#waiting.splice(0, count)) run();
  }

  leave() {
    for (const { fail } of this.#waiting.splice(0)) fail(new InstanceElsewhereError(null));
  }
}

function open(stays: Stay[]) {
  const hub = new SocketHub({ pingIntervalMs: 30_000, maxBufferedBytes: 2 ** 20 });
  const directory = { get: () => stays[0] } as unknown as Directory;
  let moves = 0;
  const inbox = new ConnectionInbox(
    { directory, hub, departures: {} as Departures },
    {
      definition: { kebab: "room" } as AgentDefinition,
      ref: { account: "default", agent: "room", name: "x" },
      id: "c",
      uri: "/",
      isReadonly: false,
    },
    SOCKET,
    () => (moves += 1),
  );
  inbox.resume(FACTS, Promise.resolve());
  return { inbox, movesOf: () => moves };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

it("a message does not overtake those that were given to the instance before it moved away and came back", async () => {
  const [first, second] = [new Stay(), new Stay()];
  const stays = [first, second];
  const { inbox } = open(stays);
  await settle();
  const early = ["1", "2", "3"].map((message) => inbox.receive(message));
  // It has left memory and is back, and the turns that it had have not failed yet.
  stays.shift();
  const late = ["4", "5"].map((message) => inbox.receive(message));
  await settle();
  second.work();
  first.work(1);
  first.leave();
  expect(await Promise.all(early)).toEqual([true, false, false]);
  await settle();
  second.work();
  expect(await Promise.all(late)).toEqual([false, false]);
  expect([first.ran, second.ran]).toEqual([["1"], []]);
});

it("messages go on at the instance that was loaded again if those before them ran", async () => {
  const [first, second] = [new Stay(), new Stay()];
  const stays = [first, second];
  const { inbox } = open(stays);
  await settle();
  const early = inbox.receive("1");
  stays.shift();
  const late = ["2", "3"].map((message) => inbox.receive(message));
  await settle();
  expect(second.ran).toEqual([]);
  first.work();
  expect(await early).toBe(true);
  await settle();
  second.work();
  expect(await Promise.all(late)).toEqual([true, true]);
  expect(second.ran).toEqual(["2", "3"]);
});
