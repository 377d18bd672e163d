/** Connections to the agent `Room` at the nodes of a cluster. */
import { join } from "node:path";
import { expect } from "vitest";
import { RawClient } from "./agents.ts";
import type { ClusterNodeProcess } from "./cluster.ts";

export const ROOM_AGENTS = join(import.meta.dirname, "../fixtures/room-agents.ts");

/** A connection that has been greeted. */
export async function enter(node: ClusterNodeProcess, room: string, query = ""): Promise<RawClient> {
  const client = await new RawClient(`${node.url}/agents/room/${room}${query}`).opened();
  await client.greeted();
  return client;
}

/** The result of a call that succeeds. */
// oxlint-disable-next-line typescript/no-explicit-any -- tests read any member of a result
export async function ask(client: RawClient, method: string, ...args: unknown[]): Promise<any> {
  const frame = await client.call(method, ...args);
  expect(frame).toMatchObject({ success: true });
  return frame.result;
}

/** The events of a kind that the room has stored: who, and a detail. */
export async function events(client: RawClient, kind: string): Promise<string[]> {
  const rows = (await ask(client, "events", kind)) as { who: string; detail: string }[];
  return rows.map(({ who, detail }) => `${who} ${detail}`.trim());
}

export interface Places {
  readonly owner: ClusterNodeProcess;
  readonly other: ClusterNodeProcess;
}

/** Creates the room, and says which of two nodes runs it. The visitor that did that is gone. */
export async function findPlaces(nodes: readonly ClusterNodeProcess[], room: string): Promise<Places> {
  const visitor = await enter(nodes[0] as ClusterNodeProcess, room, "?_pk=visitor");
  const pid = await ask(visitor, "where");
  visitor.close();
  await visitor.closed();
  const owner = nodes.find((node) => node.pid === pid);
  const other = nodes.find((node) => node.pid !== pid);
  if (owner === undefined || other === undefined) throw new Error("the room runs at no node, or at all");
  return { owner, other };
}

/** A room that runs at the given node: names are tried until one does. */
export async function roomAt(
  nodes: readonly ClusterNodeProcess[],
  owner: ClusterNodeProcess,
  prefix: string,
): Promise<string> {
  for (let i = 0; ; i++) {
    const room = `${prefix}-${i}`;
    if ((await findPlaces(nodes, room)).owner === owner) return room;
  }
}
