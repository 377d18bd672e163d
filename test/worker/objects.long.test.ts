/** Objects as operators see them, and an object that ends the process. */
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { connectAgent } from "./support/agent-client.ts";
import { startWorker, type WorkerServer } from "./support/worker-server.ts";

const CLOCK = pathToFileURL(join(import.meta.dirname, "../support/clock-preload.ts")).href;

let server: WorkerServer;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-bomb-"));
  server = await startWorker("catalogue/src/server.ts", { env: { BOMB_FILE: join(folder, "rings") } });
});
afterAll(async () => {
  await server.remove();
  await rm(folder, { recursive: true, force: true });
});

interface Shown {
  readonly name: string;
  readonly object_name: string | null;
  readonly connection_count: number;
  readonly next_due_at?: string | null;
}

async function api<T>(method: string, path: string): Promise<{ status: number; result: T }> {
  const response = await fetch(`${server.url}/accounts/default/agents${path}`, {
    method,
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  });
  return { status: response.status, result: ((await response.json()) as { result: T }).result };
}

test("operators see the classes and objects of a worker, without their state, and destroy them", async () => {
  const client = connectAgent<{ text: string }>(server, "Document", "plan");
  await client.ready;
  await client.call("write", "a secret");
  const team = connectAgent(server, "Team", "blue");
  await team.ready;
  await team.call("assign", "ann", "paint");

  const { result: classes } = await api<{ name: string; kind: string; instance_count: number }[]>("GET", "");
  expect(classes).toContainEqual({
    name: "document",
    class_name: "Document",
    kind: "object",
    is_built_in: false,
    callable: [],
    instance_count: 1,
    turns: expect.any(Array),
    failed_turns: 0,
    turn_p95_ms: expect.toBeOneOf([null, expect.any(Number)]),
  });
  expect(
    classes
      .filter(({ kind }) => kind === "object")
      .map(({ name }) => name)
      .toSorted(),
  ).toEqual(["bomb", "document", "jobs", "member", "team"]);
  expect(classes.find(({ name }) => name === "webhook-agent")).toMatchObject({ kind: "agent" });

  const { result: documents } = await api<Shown[]>("GET", "/document/instances");
  expect(documents).toMatchObject([{ object_name: "plan", connection_count: 1 }]);
  const id = documents[0]?.name ?? "";
  for (const search of ["plan", id.slice(10, 20)])
    expect((await api<Shown[]>("GET", `/document/instances?search=${search}`)).result).toHaveLength(1);
  expect((await api<Shown[]>("GET", "/document/instances?search=pla")).result).toEqual([]);
  const detail = await api<Shown>("GET", `/document/instances/${id}`);
  expect(detail.result).toMatchObject({ object_name: "plan", state: null });
  expect(JSON.stringify(detail)).not.toContain("a secret");
  expect((await api("GET", `/document/instances/${"0".repeat(64)}`)).status).toBe(404);
  expect((await api("GET", "/unknown/instances")).status).toBe(404);

  // With its nested agents.
  const { result: teams } = await api<Shown[]>("GET", "/team/instances");
  expect(teams).toHaveLength(2);
  const blue = teams.find(({ object_name: name }) => name === "blue");
  expect((await api("DELETE", `/team/instances/${blue?.name ?? ""}`)).status).toBe(200);
  team.close();
  await expect.poll(async () => (await api<Shown[]>("GET", "/team/instances")).result).toEqual([]);

  expect((await api("DELETE", `/document/instances/${id}`)).status).toBe(200);
  await expect.poll(() => client.state).toEqual({ text: "" });
  client.close();
});

test("an alarm that ends the process each time does not keep the server from running", async () => {
  const rings = async () => (await readFile(join(folder, "rings"), "utf8")).split("\n").filter(Boolean);
  const ended = once(server.child, "exit");
  await fetch(`${server.url}/bomb`).catch(() => undefined);
  await ended;
  // The first repeat is at once, and ends the process again, perhaps before its first line has been read here.
  const repeated = await server.restart().catch(() => null);
  if (repeated?.child.signalCode === null) await once(repeated.child, "exit");
  expect(await rings()).toEqual(["0", "1"]);
  // From then on the alarm waits longer each time. A clock that is behind makes the time longer than the machine needs for the start.
  server = await server.restart({
    NODE_OPTIONS: `--import=${CLOCK}`,
    SIGNALBOX_TEST_CLOCK_MS: String(-3_600_000),
  });
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
});
