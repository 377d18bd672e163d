/** Nodes that stop or are killed under a program of the worker mode. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parseJsonc } from "../../packages/signalbox/src/core/jsonc.ts";
import { PROGRAMS } from "./support/worker-server.ts";
import { startWorkerCluster, type WorkerCluster } from "./support/worker-cluster.ts";

let cluster: WorkerCluster;
let pids: readonly number[];

/** Each test loses a node, so each try has a cluster of its own. */
async function startNodes(count: number, args: readonly string[] = []): Promise<void> {
  const started = await startWorkerCluster(count, { mortals: 1, args });
  onTestFinished(() => started.stop());
  cluster = started;
  ({ pids } = started);
}

const call: WorkerCluster["call"] = (...args) => cluster.call(...args);

test("a node that stops hands its objects over, and the WebSockets of other nodes' clients follow without a new request", async () => {
  await startNodes(3);
  const room = await cluster.roomAt(2);
  const ann = await cluster.connect(0, room, "ann");
  const bob = await cluster.connect(1, room, "bob");
  const eve = await cluster.connect(2, room, "eve");
  for (const client of [ann, bob, eve]) {
    await client.next();
    client.socket.send("before");
    expect(JSON.parse(await client.next())).toMatchObject({ pid: pids[2], messages: 1, message: "before" });
  }
  expect(await call(1, `room/${room}/inChild`, "kid")).toEqual({
    parent: pids[2],
    child: pids[2],
    count: 1,
  });
  const stopped = cluster.nodes[2]?.end("SIGTERM");
  expect(await eve.closed).toMatchObject({ code: 1012 });
  await stopped;
  const { pid } = await call<{ pid: number }>(0, `room/${room}/add`, 0);
  expect(pids.slice(0, 2)).toContain(pid);
  // The attachments and tags came along.
  for (const [client, user] of [
    [ann, "ann"],
    [bob, "bob"],
  ] as const) {
    client.socket.send("after");
    expect(JSON.parse(await client.next())).toMatchObject({ pid, user, messages: 2, tags: [user, "all"] });
    client.socket.send("ping");
    expect(await client.next()).toBe("pong");
  }
  expect(await call(1, `room/${room}/broadcast`, "all of you", "all")).toBe(2);
  expect([await ann.next(), await bob.next()]).toEqual(["all of you", "all of you"]);
  expect(await call(0, `room/${room}/closes`)).toEqual([
    expect.objectContaining({ user: "eve", code: 1012 }),
  ]);
  // The facet is where its parent is.
  expect(await call(1, `room/${room}/inChild`, "kid")).toEqual({ parent: pid, child: pid, count: 2 });
  ann.socket.close(4005, "over");
  await ann.closed;
  await expect
    .poll(() => call(1, `room/${room}/closes`))
    .toContainEqual({ user: "ann", code: 4005, reason: "over", wasClean: true });
  bob.socket.close();
});

/** A copy of the program's wrangler file with the strategy. */
async function updating(strategy: object): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-update-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = parseJsonc(await readFile(join(PROGRAMS, "nodes/wrangler.jsonc"), "utf8")) as {
    durable_objects: object;
  };
  file.durable_objects = { ...file.durable_objects, code_update_strategy: strategy };
  const path = join(folder, "wrangler.json");
  await writeFile(path, JSON.stringify(file));
  return ["--wrangler", path];
}

async function untilAtWork(room: string): Promise<void> {
  await expect.poll(() => call(1, `room/${room}/hasHanging`)).toBe(true);
}

test("with a deferred update, an object that works stays at the node that stops and takes further events, until it is idle", async () => {
  await startNodes(2, await updating({ mode: "deferred", max_delay: 3600 }));
  const [busy, idle] = [await cluster.roomAt(1), await cluster.roomAt(1)];
  const working = call(0, `room/${busy}/workOn`);
  await untilAtWork(busy);
  expect(await call(0, `room/${busy}/inChild`, "kid")).toEqual({ parent: pids[1], child: pids[1], count: 1 });
  const stopped = cluster.nodes[1]?.end("SIGTERM");
  await expect.poll(() => call(0, `room/${idle}/where`)).toBe(pids[0]);
  expect(await call(0, `room/${busy}/add`, 1)).toEqual({ pid: pids[1], count: 1 });
  expect(await call(0, `room/${busy}/inChild`, "kid")).toEqual({ parent: pids[1], child: pids[1], count: 2 });
  await call(0, `room/${busy}/release`);
  expect(await working).toBe(pids[1]);
  expect(await stopped).toBe(0);
  expect(await call(0, `room/${busy}/add`, 1)).toEqual({ pid: pids[0], count: 2 });
});

test.each([
  ["an immediate update", { mode: "immediate" }],
  ["a deferred update whose delay is over", { mode: "deferred", max_delay: 0.1 }],
])("%s interrupts an object that works", async (_, strategy) => {
  await startNodes(2, await updating(strategy));
  const room = await cluster.roomAt(1);
  await call(0, `room/${room}/add`, 1);
  // Within the grace period of other objects, so that it would end.
  const working = call(0, `room/${room}/work`, 3000);
  await untilAtWork(room);
  const stopped = cluster.nodes[1]?.end("SIGTERM");
  expect(await working).toMatchObject({ error: expect.any(String) as unknown });
  expect(await stopped).toBe(0);
  expect(await call(0, `room/${room}/add`, 1)).toEqual({ pid: pids[0], count: 2 });
});

test("when the owner is killed, its objects go on at another node with what was acknowledged; clients are cut and callers told", async () => {
  await startNodes(2);
  const room = await cluster.roomAt(1);
  const ann = await cluster.connect(0, room, "ann");
  await ann.next();
  ann.socket.send("one");
  expect(JSON.parse(await ann.next())).toMatchObject({ count: 1 });
  const other = await cluster.roomAt(0);
  const eve = await cluster.connect(1, other, "eve");
  await eve.next();
  const hanging = call(0, `room/${room}/hang`);
  // A call that has not arrived yet would wait for the take-over, and hang there.
  await expect.poll(() => call(0, `room/${room}/hasHanging`)).toBe(true);
  // Set last, and late enough not to ring before the kill.
  await call(0, `room/${room}/wakeIn`, 10_000);
  ann.socket.send("die");
  expect(await ann.closed).toMatchObject({ code: 1006 });
  expect(await hanging).toMatchObject({ error: "Network connection lost.", retryable: true });
  // A call waits for the take-over.
  expect(await call(0, `room/${room}/add`, 1)).toEqual({ pid: pids[0], count: 2 });
  await expect.poll(() => call(0, `room/${room}/rings`)).toEqual([pids[0]]);
  // The client of the lost node is gone: its object sees it once.
  await expect
    .poll(() => call(0, `room/${other}/closes`))
    .toEqual([expect.objectContaining({ user: "eve", code: 1006, wasClean: false })]);
});
