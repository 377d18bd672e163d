/** A program of the worker mode on two nodes: the same answers at both, wherever its objects are. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startWorkerCluster, type WorkerCluster } from "./support/worker-cluster.ts";

let cluster: WorkerCluster;
let pids: readonly number[];
beforeAll(async () => {
  cluster = await startWorkerCluster(2);
  ({ pids } = cluster);
});
afterAll(() => cluster.stop());

const call: WorkerCluster["call"] = (...args) => cluster.call(...args);

test("an object runs on one node, and both nodes reach it", async () => {
  expect(new Set(pids).size).toBe(2);
  const names = Array.from({ length: 8 }, (_, i) => `counter-${i}`);
  const owners = new Set<number>();
  for (const name of names) {
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, i) => call<{ pid: number; count: number }>(i % 2, `room/${name}/add`, 1)),
    );
    expect(new Set(answers.map(({ pid }) => pid)).size).toBe(1);
    expect(answers.map(({ count }) => count).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6]);
    owners.add(answers[0]?.pid ?? 0);
  }
  expect(owners).toEqual(new Set(pids));
});

test("an object calls another one on another node, which calls it back", async () => {
  const room = await cluster.roomAt(0);
  const callers = new Set<number>();
  for (let i = 0; i < 6; i += 1) {
    const answer = await call<{ here: number; there: number }>(i % 2, `desk/desk-${i}/visit`, room, 3);
    expect(answer).toEqual({ here: expect.any(Number) as number, there: pids[0], seen: [1, 2, 3], last: 3 });
    callers.add(answer.here);
  }
  expect(callers).toContain(pids[1]);
  expect(await call(1, `room/${room}/add`, 0)).toEqual({ pid: pids[0], count: 18 });
});

test("bodies are streamed in both directions", async () => {
  const room = await cluster.roomAt(1);
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
  });
  expect(await upload.json()).toEqual({ pid: pids[1], bytes: 8 * piece.length });
});

test("a WebSocket works at the node that is not the owner: frames, tags, attachments, automatic answers, closes", async () => {
  const room = await cluster.roomAt(1);
  const ann = await cluster.connect(0, room, "ann");
  const bob = await cluster.connect(1, room, "bob");
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

test("a bookmark and a snapshot are restored, also by an object of another node", async () => {
  const [here, there] = [await cluster.roomAt(0), await cluster.roomAt(1)];
  await call(0, `room/${here}/add`, 5);
  const bookmark = await call<string>(1, `room/${here}/mark`);
  await call(0, `room/${here}/add`, 2);
  const ended = (path: string, ...args: unknown[]) => call(0, path, ...args).catch(() => undefined);
  await ended(`room/${there}/copy`, here);
  expect(await call(0, `room/${there}/add`, 0)).toEqual({ pid: pids[1], count: 7 });
  await ended(`room/${here}/goBack`, bookmark);
  expect(await call(1, `room/${here}/add`, 0)).toEqual({ pid: pids[0], count: 5 });
  expect(await call(0, `room/${there}/add`, 1)).toEqual({ pid: pids[1], count: 8 });
});

test("a facet lives with its parent, and an alarm rings at the owner", async () => {
  const room = await cluster.roomAt(1);
  expect(await call(0, `room/${room}/inChild`, "kid")).toEqual({ parent: pids[1], child: pids[1], count: 1 });
  expect(await call(1, `room/${room}/inChild`, "kid")).toMatchObject({ child: pids[1], count: 2 });
  await call(0, `room/${room}/wakeIn`, 10);
  await expect.poll(() => call(0, `room/${room}/rings`)).toEqual([pids[1]]);
});

test("operators see, move and destroy an object at either node, with its clients of both", async () => {
  const room = await cluster.roomAt(1);
  const ann = await cluster.connect(0, room, "ann");
  const bob = await cluster.connect(1, room, "bob");
  await Promise.all([ann.next(), bob.next()]);
  const api = async <T>(node: number, method: string, path: string, body?: unknown) => {
    const answer = await cluster.nodes[node]?.api(
      method,
      `/accounts/default/agents/room/instances${path}`,
      body,
    );
    return { status: answer?.status, result: answer?.body.result as T };
  };
  interface Shown {
    readonly name: string;
  }
  for (const node of [0, 1]) {
    // A node that does not answer the other one in time counts as one that knows nothing.
    await expect
      .poll(async () => (await api<Shown[]>(node, "GET", `?search=${room}`)).result)
      .toMatchObject([{ object_name: room, connection_count: 2, in_memory: true, node: "node-2" }]);
  }
  const { result } = await api<Shown[]>(0, "GET", `?search=${room}`);
  const id = result[0]?.name ?? "";
  expect((await api(0, "POST", `/${id}/move`, { to: "node-1" })).status).toBe(200);
  expect(await call(1, `room/${room}/broadcast`, "moved")).toBe(2);
  expect([await ann.next(), await bob.next()]).toEqual(["moved", "moved"]);
  expect(await call(1, `room/${room}/where`)).toBe(pids[0]);
  expect((await api(1, "GET", `/${id}`)).result).toMatchObject({ connection_count: 2, node: "node-1" });
  expect((await api(1, "DELETE", `/${id}`)).status).toBe(200);
  expect([(await ann.closed).code, (await bob.closed).code]).toEqual([1006, 1006]);
  expect((await api(0, "GET", `/${id}`)).status).toBe(404);
  expect(await call(1, `room/${room}/add`, 0)).toMatchObject({ count: 0 });
});

test("a cron trigger runs once in the cluster", async () => {
  const crons = async () => (await call<{ count: number }>(0, "room/crons/add", 0)).count;
  // The trigger is each minute.
  await expect.poll(crons).toBeGreaterThan(0);
  const ticks = await call<number[]>(1, "room/crons/ticks");
  expect(new Set(ticks).size).toBe(ticks.length);
});
