import { describe, expect, it } from "vitest";
import { toFrame } from "../../engines/http-server/index.ts";
import { ConnectionGroup } from "./connection-group.ts";
import type { ConnectionSocket } from "./connection-socket.ts";
import { LiveConnection } from "./live-connection.ts";

class RecordingSocket implements ConnectionSocket {
  readonly written: Buffer[] = [];
  closed: number | null = null;
  readonly readyState = 1;
  readonly bufferedAmount = 0;

  get isClosed(): boolean {
    return this.closed !== null;
  }

  write(frame: Buffer): void {
    this.written.push(frame);
  }

  close(code: number): void {
    this.closed = code;
  }
}

function create(
  group: ConnectionGroup,
  joinedAt: number,
): { connection: LiveConnection; socket: RecordingSocket } {
  const socket = new RecordingSocket();
  const connection = new LiveConnection(group, "id", "/", socket, false);
  connection.joinedAt = joinedAt;
  return { connection, socket };
}

it("a new connection replaces the one with its id", () => {
  const group = new ConnectionGroup("key", { maxBufferedBytes: 1 });
  const [first, second] = [create(group, 0), create(group, 0)];
  group.join(first.connection);
  group.join(second.connection);
  expect([first.socket.closed, second.socket.closed]).toEqual([4409, null]);
  expect(group.list()).toEqual([second.connection]);
});

it.each([
  ["first", [1, 2]],
  ["last", [2, 1]],
])("of two connections that resume with one id the younger stays, if it resumes %s", (_title, order) => {
  const group = new ConnectionGroup("key", { maxBufferedBytes: 1 });
  const both = order.map((joinedAt) => create(group, joinedAt));
  for (const { connection } of both) group.join(connection);
  const closed = both
    .toSorted((a, b) => a.connection.joinedAt - b.connection.joinedAt)
    .map(({ socket }) => socket.closed);
  expect(closed).toEqual([4409, null]);
  expect(group.joinedCount).toBe(1);
});

it("a connection that moved on neither writes to its socket nor closes it", () => {
  const group = new ConnectionGroup("key", { maxBufferedBytes: 1 });
  const { connection, socket } = create(group, 1);
  group.join(connection);
  connection.detach();
  connection.write(Buffer.from("late"));
  connection.closeNow(1000, "late");
  expect([socket.written, socket.closed]).toEqual([[], null]);
});

describe("connections that follow their instance", () => {
  const text = (frame: Buffer) => frame.toString("utf8", 2);
  const follow = (group: ConnectionGroup, id: string, hasProtocol = true) => {
    const socket = new RecordingSocket();
    const connection = new LiveConnection(group, id, "/", socket, false);
    connection.hasProtocol = hasProtocol;
    group.resume(connection)(toFrame("state 2"));
    return { written: () => socket.written.map(text), connection };
  };
  const open = () => {
    const group = new ConnectionGroup("key", { maxBufferedBytes: 1 });
    group.keepRecent();
    group.broadcastFrame("state 1", null);
    group.broadcast("hello", ["b"]);
    group.broadcastFrame("state 2", "c");
    return group;
  };

  it("receive what was broadcast before they came, in order, and the state once", () => {
    const group = open();
    expect(follow(group, "a").written()).toEqual(["state 1", "hello", "state 2"]);
    expect(follow(group, "b").written()).toEqual(["state 1", "state 2"]);
    // Its own state, which it has: after a move the state is sent in any case.
    expect(follow(group, "c").written()).toEqual(["state 1", "hello", "state 2"]);
    expect(follow(group, "d", false).written()).toEqual(["hello"]);
  });

  it("receive nothing twice", () => {
    const group = open();
    const first = follow(group, "a");
    group.broadcast("later", []);
    group.leave(first.connection);
    expect(first.written()).toEqual(["state 1", "hello", "state 2", "later"]);
    expect(follow(group, "a").written()).toEqual(["state 2"]);
  });

  it("receive nothing twice if they were here when the instance was loaded again", () => {
    const group = new ConnectionGroup("key", { maxBufferedBytes: 1 });
    const first = follow(group, "a");
    group.keepRecent();
    group.broadcastFrame("state 1", null);
    group.broadcastFrame("state 2", null);
    group.leave(first.connection);
    expect(follow(group, "a").written()).toEqual(["state 2"]);
  });

  it("receive the state only if more was broadcast than is kept, or the instance has left memory", () => {
    const group = open();
    group.broadcast("x".repeat(300_000), []);
    expect(follow(group, "a").written()).toEqual(["state 2"]);
    const other = open();
    other.detach();
    expect(follow(other, "a").written()).toEqual(["state 2"]);
  });
});
