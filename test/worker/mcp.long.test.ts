/** MCP servers and clients of the published package, with the SDK's client; sessions survive kill -9. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connectAgent } from "./support/agent-client.ts";
import { startWorker, type WorkerServer } from "./support/worker-server.ts";

let server: WorkerServer;
beforeAll(async () => {
  server = await startWorker("mcp/src/server.ts", {
    file: { agents: { access: "worker", idleTimeoutMs: 100 } },
  });
});
afterAll(() => server.remove());

async function connect(transport: Transport): Promise<Client> {
  const client = new Client({ name: "test", version: "1.0.0" });
  await client.connect(transport);
  return client;
}
const http = (path: string, headers: Record<string, string> = {}) =>
  new StreamableHTTPClientTransport(new URL(server.url + path), { requestInit: { headers } }) as Transport;

async function use(client: Client, name: string, args: Record<string, unknown> = {}): Promise<string> {
  const { content } = await client.callTool({ name, arguments: args });
  return (content as { text: string }[])[0]?.text ?? "";
}

test.each(["/mcp", "/older"])("a session at %s has its own state, which survives kill -9", async (path) => {
  const client = await connect(http(path, { "x-by": "ann" }));
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(["add", "who", "slow", "patient", "hold", "fail"]);
  expect(await use(client, "add", { amount: 4 })).toBe("4");
  expect(await use(client, "who")).toBe("ann");
  const other = await connect(http(path));
  expect(await use(other, "add", { amount: 1 })).toBe("1");
  server = await server.killAndRestart();
  expect(await use(client, "add", { amount: 5 })).toBe("9");
  expect(await use(client, "who")).toBe("ann");
  expect(await client.readResource({ uri: "tally://total" })).toMatchObject({ contents: [{ text: "9" }] });
  await client.close();
  await other.close();
});

test("progress arrives while the tool runs, and failures are results", async () => {
  const client = await connect(http("/mcp"));
  const progress: number[] = [];
  await client.callTool({ name: "slow", arguments: {} }, undefined, {
    onprogress: (step) => progress.push(step.progress),
  });
  expect(progress).toEqual([1, 2, 3]);
  expect(await client.callTool({ name: "fail", arguments: {} })).toMatchObject({
    isError: true,
    content: [{ text: "as asked" }],
  });
  expect(await client.callTool({ name: "add", arguments: { amount: "x" } })).toMatchObject({ isError: true });
  await client.close();
});

test.each(["/mcp", "/older", "/sse"])("a tool at %s that only waits for timers answers", async (path) => {
  const client = await connect(
    path === "/sse" ? new SSEClientTransport(new URL(server.url + path)) : http(path),
  );
  expect(await use(client, "patient")).toBe("at last");
  await client.close();
});

test("a session of the older transport, and a server without sessions", async () => {
  const old = await connect(new SSEClientTransport(new URL(`${server.url}/sse`)));
  expect(await use(old, "add", { amount: 2 })).toBe("2");
  expect(await use(old, "add", { amount: 3 })).toBe("5");
  await old.close();
  const echo = await connect(http("/echo"));
  expect(await use(echo, "echo", { text: "back" })).toBe("back");
  await echo.close();
});

test("a session that was ended is unknown", async () => {
  const transport = http("/mcp") as StreamableHTTPClientTransport;
  const client = await connect(transport);
  await use(client, "add", { amount: 1 });
  const session = transport.sessionId ?? "";
  await transport.terminateSession();
  const ask = async () => {
    const response = await fetch(`${server.url}/mcp`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-session-id": session,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
    });
    await response.text();
    return response.status;
  };
  // The class ends the object a moment later, and with it what runs then.
  await expect.poll(ask).toBe(404);
});

test("an agent is a client: it lists and calls tools, also after kill -9, and leaves", async () => {
  const caller = connectAgent<{ results: string[] }>(server, "Caller", `one-${crypto.randomUUID()}`);
  await caller.ready;
  const joined = (await caller.call("join", `${server.url}/mcp`)) as { id: string; tools: string[] };
  expect(joined).toMatchObject({ state: "ready", tools: ["add", "who", "slow", "patient", "hold", "fail"] });
  expect(await caller.call("use", joined.id, "add", { amount: 6 })).toBe("6");
  server = await server.killAndRestart();
  await caller.ready;
  // The agent connects again by itself, to the same session.
  expect(await caller.call("use", joined.id, "add", { amount: 1 })).toBe("7");
  await expect.poll(() => caller.state).toEqual({ results: ["6", "7"] });
  expect(await caller.call("leave", joined.id)).toEqual([]);
  caller.close();
});
