/** A program of the worker mode on two nodes: the same answers at both, wherever its objects are. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { join } from "node:path";
import { WebSocket } from "ws";
import { startTestCluster, type TestCluster } from "../support/cluster.ts";
import { PROGRAMS } from "./support/worker-server.ts";

let cluster: TestCluster;
let pids: number[];
beforeAll(async () => {
  cluster = await startTestCluster({
    file: { agents: { access: "worker" } },
    args: ["--worker", join(PROGRAMS, "nodes/src/server.ts")],
    env: { SIGNALBOX_NO_REEXEC: "1" },
  });
  pids = await Promise.all(
    cluster.urls.map(async (url) => ((await (await fetch(`${url}/pid`)).json()) as { pid: number }).pid),
  );
});
afterAll(() => cluster.stop());

async function call<T>(node: number, path: string, ...args: unknown[]): Promise<T> {
  const response = await fetch(`${cluster.urls[node]}/${path}`, { method: "POST", body: JSON.stringify(args) });
  return (await response.json()) as T;
}

/** A new room that runs on the node. */
async function roomAt(node: number): Promise<string> {
  for (let i = 0; ; i += 1) {
    const name = `room-${node}-${i}-${Math.random().toString(36).slice(2)}`;
    if ((await call<number>(i % 2, `room/${name}/where`)) === pids[node]) return name;
  }
}

test("an object runs on one node, and both nodes reach it", async () => {
  expect(new Set(pids).size).toBe(2);
  const names = Array.from({ length: 8 }, (_, i) => `counter-${i}`);
  const owners = new Set<number>();
  for (const name of names) {
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, i) => call<{ pid: number; count: number }>(i % 2, `room/${name}/add`, 1)),
    );
    expect(new Set(answers.map(({ pid }) => pid)).size).toBe(1);
    expect(answers.map(({ count }) => count).toSorted()).toEqual([1, 2, 3, 4, 5, 6]);
    owners.add(answers[0]?.pid ?? 0);
  }
  expect(owners).toEqual(new Set(pids));
});

test("an object calls another one on another node, which calls it back", async () => {
  const room = await roomAt(0);
  for (let i = 0; i < 4; i += 1) {
    const answer = await call<{ here: number; there: number }>(i % 2, `desk/desk-${i}/visit`, room, 3);
    expect(answer).toEqual({ here: expect.any(Number), there: pids[0], seen: [1, 2, 3], last: 3 });
  }
  expect(await call(1, `room/${room}/add`, 0)).toEqual({ pid: pids[0], count: 12 });
});

test("bodies are streamed in both directions", async () => {
  const room = await roomAt(1);
  const lines = await fetch(`${cluster.urls[0]}/fetch/${room}/lines`);
  expect(lines.headers.get("x-pid")).toBe(String(pids[1]));
  expect(await lines.text()).toBe("line 0\nline 1\nline 2\nline 3\nline 4\n");
  const piece = new Uint8Array(64 * 1024);
  let sent = 0;
  const body = new ReadableStream({
    pull(controller) {
      sent += 1;
      if (sent > 8) controller.close();
      else controller.enqueue(piece);
    },
  });
  const upload = await fetch(`${cluster.urls[0]}/fetch/${room}/upload`, {
    method: "POST",
    body,
    duplex: "half",
  } as RequestInit);
  expect(await upload.json()).toEqual({ pid: pids[1], bytes: 8 * piece.length });
});

interface Client {
  readonly socket: WebSocket;
  readonly messages: string[];
  readonly closed: Promise<{ code: number; reason: string }>;
  next(): Promise<string>;
}

async function connect(node: number, room: string, user: string): Promise<Client> {
  const url = `${cluster.urls[node]?.replace("http", "ws")}/fetch/${room}?user=${user}`;
  const socket = new WebSocket(url);
  const messages: string[] = [];
  let read = 0;
  socket.on("message", (data: Buffer, isBinary) =>
    messages.push(isBinary ? `binary ${data.toString("hex")}` : data.toString()),
  );
  socket.on("error", () => undefined);
  const closed = new Promise<{ code: number; reason: string }>((resolve) =>
    socket.on("close", (code, reason) => resolve({ code, reason: reason.toString() })),
  );
  await new Promise((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", reject);
  });
  return {
    socket,
    messages,
    closed,
    async next() {
      await expect.poll(() => messages.length).toBeGreaterThan(read);
      read += 1;
      return messages[read - 1] ?? "";
    },
  };
}

test("a WebSocket works at the node that is not the owner: frames, tags, attachments, automatic answers, closes", async () => {
  const room = await roomAt(1);
  const ann = await connect(0, room, "ann");
  const bob = await connect(1, room, "bob");
  expect(await ann.next()).toBe("welcome ann");
  expect(await bob.next()).toBe("welcome bob");
  for (const [i, message] of ["one", "two"].entries()) {
    ann.socket.send(message);
    expect(JSON.parse(await ann.next())).toEqual({
      pid: pids[1],
      user: "ann",
      messages: i + 1,
      message,
      tags: ["ann", "all"],
      count: i + 1,
    });
  }
  ann.socket.send(Buffer.from([1, 2, 255]));
  expect(await ann.next()).toBe("binary 0102ff");
  ann.socket.send("ping");
  expect(await ann.next()).toBe("pong");
  expect(await call(0, `room/${room}/broadcast`, "hello", "all")).toBe(2);
  expect([await ann.next(), await bob.next()]).toEqual(["hello", "hello"]);
  expect(await call(0, `room/${room}/broadcast`, "only ann", "ann")).toBe(1);
  expect(await ann.next()).toBe("only ann");
  ann.socket.close(4002, "enough");
  bob.socket.send("bye");
  expect(await ann.closed).toEqual({ code: 4002, reason: "enough" });
  expect(await bob.closed).toEqual({ code: 4001, reason: "as you wish" });
  await expect
    .poll(() => call<object[]>(0, `room/${room}/closes`))
    .toEqual(
      expect.arrayContaining([
        { user: "ann", code: 4002, reason: "enough", wasClean: true },
        expect.objectContaining({ user: "bob", code: 4001 }),
      ]),
    );
});
