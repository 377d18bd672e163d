/** The program `nodes` on a cluster: calls of its objects at each node, and WebSockets. */
import { join } from "node:path";
import { expect } from "vitest";
import { WebSocket } from "ws";
import { startTestCluster, type TestCluster, type TestClusterOptions } from "../../support/cluster.ts";
import { PROGRAMS } from "./worker-server.ts";

export interface WorkerCluster extends TestCluster {
  /** Process ids of the nodes, as the program sees them. */
  readonly pids: readonly number[];
  /** Calls a method of an object, given as `kind/name/method`, at a node. */
  call<T>(node: number, path: string, ...args: unknown[]): Promise<T>;
  /** A new room that runs on the node. */
  roomAt(node: number): Promise<string>;
  connect(node: number, room: string, user: string): Promise<Client>;
}

export interface Client {
  readonly socket: WebSocket;
  readonly messages: readonly string[];
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  /** The next message that was not read yet. */
  next(): Promise<string>;
}

export async function startWorkerCluster(
  nodes: number,
  { mortals = 0, env = {}, args = [] }: Pick<TestClusterOptions, "mortals" | "env" | "args"> = {},
): Promise<WorkerCluster> {
  const cluster = await startTestCluster({
    nodes,
    mortals,
    // Objects with open WebSockets stay in memory.
    file: { agents: { access: "worker", idleTimeoutMs: 3_600_000 } },
    args: ["--worker", join(PROGRAMS, "nodes/src/server.ts"), ...args],
    env: { SIGNALBOX_NO_REEXEC: "1", ...env },
  });
  const call = async <T>(node: number, path: string, ...args: unknown[]): Promise<T> => {
    const body = JSON.stringify(args);
    const response = await fetch(`${cluster.urls[node]}/${path}`, { method: "POST", body });
    return (await response.json()) as T;
  };
  const pids = await Promise.all(
    cluster.urls.map(async (_, node) => (await call<{ pid: number }>(node, "pid")).pid),
  );
  return {
    ...cluster,
    get urls() {
      return cluster.urls;
    },
    pids,
    call,
    async roomAt(node) {
      for (let i = 0; ; i += 1) {
        const name = `room-${node}-${i}-${Math.random().toString(36).slice(2)}`;
        if ((await call<number>(node, `room/${name}/where`)) === pids[node]) return name;
      }
    },
    connect: (node, room, user) => connect(cluster.urls[node] ?? "", room, user),
  };
}

async function connect(url: string, room: string, user: string): Promise<Client> {
  const socket = new WebSocket(`${url.replace("http", "ws")}/fetch/${room}?user=${user}`);
  const messages: string[] = [];
  let read = 0;
  socket.on("message", (data: Buffer, isBinary) =>
    messages.push(isBinary ? `binary ${data.toString("hex")}` : data.toString()),
  );
  const closed = new Promise<{ code: number; reason: string }>((resolve) =>
    socket.on("close", (code, reason) => resolve({ code, reason: reason.toString() })),
  );
  await new Promise((resolve, reject) => {
    socket.once("open", resolve);
    socket.on("error", reject);
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
