/** The unmodified clients of three versions of the public `agents` package: interface section 6.3. */
import { AgentClient, agentFetch } from "agents/client";
import { AgentClient as AgentClient14 } from "agents-14/client";
import { AgentClient as AgentClient3 } from "agents-3/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TEST_AGENTS } from "../support/agents.ts";
import { freePort } from "../support/free-port.ts";
import { startServerProcess } from "../support/server-process.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ file: { agents: { modules: [TEST_AGENTS] } } });
});
afterAll(() => server.stop());

interface Counting {
  count: number;
}

const VERSIONS = [
  ["0.32.0", AgentClient],
  ["0.14.4", AgentClient14 as unknown as typeof AgentClient],
  ["0.3.2", AgentClient3 as unknown as typeof AgentClient],
] as const;

/** The arguments of a callback's calls, and a way to wait for one of them. */
class Calls<T> {
  readonly all: T[] = [];
  #waiting: (() => void)[] = [];
  readonly push = (value: T): void => {
    this.all.push(value);
    for (const resolve of this.#waiting.splice(0)) resolve();
  };
  async until(fits: (value: T) => boolean): Promise<T> {
    for (;;) {
      const found = this.all.find(fits);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }
}

const hostOf = (url: string) => new URL(url).host;

describe.each(VERSIONS)("AgentClient %s", (version, Client) => {
  const open = (name: string, states: Calls<Counting>, token = ROOT_TOKEN) =>
    new Client<Counting>({
      agent: "Counter",
      name,
      host: hostOf(server.url),
      query: { token },
      onStateUpdate: (state) => states.push(state),
    });

  it("the client connects, receives the state, calls methods, streams results and receives errors", async () => {
    const states = new Calls<Counting>();
    const client = open(`calls-${version}`, states);
    await states.until((state) => state.count === 0);
    expect(await client.call("increment", [3])).toBe(3);
    await states.until((state) => state.count === 3);
    const chunks: unknown[] = [];
    const done = await new Promise((resolve, reject) => {
      void client.call("stream", [2], {
        onChunk: (chunk: unknown) => chunks.push(chunk),
        onDone: resolve,
        onError: reject,
      });
    });
    expect([chunks, done]).toEqual([[0, 1], "done"]);
    await expect(client.call("notCallable")).rejects.toThrow("Method notCallable is not callable");
    await expect(client.call("syncFail")).rejects.toThrow("failed at once");
    client.close();
  });

  it("a state set by one client reaches the others", async () => {
    const mine = new Calls<Counting>();
    const theirs = new Calls<Counting>();
    const [one, two] = [open(`state-${version}`, mine), open(`state-${version}`, theirs)];
    await mine.until((state) => state.count === 0);
    await theirs.until((state) => state.count === 0);
    one.setState({ count: 12 });
    expect(await theirs.until((state) => state.count === 12)).toEqual({ count: 12 });
    for (const client of [one, two]) client.close();
  });

  it("a client without permission to write receives the current state after its write", async () => {
    const states = new Calls<Counting>();
    const client = open(`readonly-${version}`, states, await server.token(["agents.read"]));
    await states.until((state) => state.count === 0);
    client.setState({ count: 99 });
    // First the client's optimistic 99, then the server's state.
    await states.until((state) => state.count === 99);
    const before = states.all.length;
    while (states.all.length === before || states.all.at(-1)?.count !== 0) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(states.all.at(-1)).toEqual({ count: 0 });
    client.close();
  });

  it("the client reconnects after a restart of the server and receives the state", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "signalbox-reconnect-"));
    const env = { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN };
    const args = ["--data-dir", dataDir, "--agents", TEST_AGENTS];
    // Not a port that the system gives to connections: one of them, or the client itself, could take it meanwhile.
    const at = ["--port", String(await freePort()), ...args];
    const first = await startServerProcess(at, { env });
    const states = new Calls<Counting>();
    const client = new Client<Counting>({
      agent: "Counter",
      name: "restart",
      host: hostOf(first.url),
      query: { token: ROOT_TOKEN },
      onStateUpdate: (state) => states.push(state),
      minReconnectionDelay: 50,
      maxReconnectionDelay: 100,
    });
    await states.until((state) => state.count === 0);
    await client.call("increment", [8]);
    await states.until((state) => state.count === 8);
    expect(await first.end("SIGTERM")).toBe(0);
    states.all.length = 0;
    const second = await startServerProcess(at, { env });
    await states.until((state) => state.count === 8);
    expect(await client.call("increment", [1])).toBe(9);
    client.close();
    await second.end("SIGTERM");
    await rm(dataDir, { recursive: true, force: true });
  });
});

// Version 0.3.2 has neither identity nor stub.
describe.each(VERSIONS.slice(0, 2))("AgentClient %s, newer features", (version, Client) => {
  it.each(["plain", "two words", "ünïcode/with%2Fslash"])(
    "the identity is available when the connection is ready: %s",
    async (name) => {
      const identities = new Calls<string>();
      const changes = new Calls<string>();
      const client = new Client<Counting>({
        agent: "Counter",
        name: encodeURIComponent(`${name} ${version}`),
        host: hostOf(server.url),
        query: { token: ROOT_TOKEN },
        onIdentity: (identified, agent) => identities.push(`${agent} ${identified}`),
        onIdentityChange: (before) => changes.push(before),
      });
      await client.ready;
      expect(identities.all).toEqual([`counter ${name} ${version}`]);
      expect(client.identified).toBe(true);
      expect(changes.all).toEqual([]);
      client.close();
    },
  );

  it("the stub calls methods, and onStateUpdateError reports why a state was refused", async () => {
    const refusals = new Calls<string>();
    const client = new Client<Counting>({
      agent: "Counter",
      name: `stub-${version}`,
      host: hostOf(server.url),
      query: { token: ROOT_TOKEN },
      onStateUpdateError: refusals.push,
    });
    const { stub } = client as unknown as { stub: { increment(by: number): Promise<number> } };
    expect(await stub.increment(4)).toBe(4);
    client.close();

    const reader = new Client<Counting>({
      agent: "Counter",
      name: `stub-${version}`,
      host: hostOf(server.url),
      query: { token: await server.token(["agents.read"]) },
      onStateUpdateError: refusals.push,
    });
    await reader.ready;
    reader.setState({ count: 1 });
    expect(await refusals.until(() => true)).toBe("Connection is readonly");
    await expect(reader.call("increment", [1])).rejects.toThrow("readonly");
    reader.close();
  });
});

describe("clients without access", () => {
  it("the connection ends with a final code and the client does not reconnect", async () => {
    const errors = new Calls<unknown>();
    const client = new AgentClient({
      agent: "Counter",
      name: "x",
      host: hostOf(server.url),
      query: { token: "wrong" },
      onConnectionError: (error: unknown) => errors.push(error),
    });
    expect(await errors.until(() => true)).toMatchObject({ code: 4401 });
    client.close();
  });
});

describe("agentFetch", () => {
  it("agentFetch reaches onRequest of the instance", async () => {
    const response = await agentFetch(
      { agent: "Counter", name: "fetched", host: hostOf(server.url) },
      { method: "GET", headers: { authorization: `Bearer ${ROOT_TOKEN}` } },
    );
    expect(await response.json()).toMatchObject({ name: "fetched", method: "GET" });
  });
});
