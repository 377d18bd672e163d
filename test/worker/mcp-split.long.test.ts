/** MCP with the SDK's later packages, which `agents` itself uses: their client, a server without sessions, and kill -9 while a tool runs. */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
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

async function connect(path: string): Promise<Client> {
  const client = new Client(
    { name: "test", version: "1.0.0" },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: "auto" } },
  );
  client.setRequestHandler("elicitation/create", async () => ({
    action: "accept",
    content: { name: "Ann" },
  }));
  await client.connect(new StreamableHTTPClientTransport(new URL(server.url + path)));
  return client;
}

async function use(client: Client, name: string, args: Record<string, unknown> = {}): Promise<string> {
  const { content } = await client.callTool({ name, arguments: args });
  return (content as { text: string }[])[0]?.text ?? "";
}

test("a session with the later client", async () => {
  const client = await connect("/mcp");
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain("add");
  expect(await use(client, "add", { amount: 2 })).toBe("2");
  expect(await use(client, "add", { amount: 3 })).toBe("5");
  await client.close();
});

test("kill -9 while a tool runs: the session goes on, with what the tool had stored", async () => {
  const client = await connect("/mcp");
  expect(await use(client, "add", { amount: 1 })).toBe("1");
  const began = Promise.withResolvers<void>();
  const abort = new AbortController();
  const held = client.callTool(
    { name: "hold", arguments: {} },
    { onprogress: () => began.resolve(), signal: abort.signal },
  );
  const outcome = held.then(
    () => "answered",
    () => "failed",
  );
  await began.promise;
  server = await server.killAndRestart();
  // The progress left after what the tool had written was durable.
  expect(await use(client, "add", { amount: 1 })).toBe("102");
  // The tool itself is gone: a client that still waits gives up.
  abort.abort();
  expect(await outcome).toBe("failed");
  await client.close();
});

test("a server without sessions keeps its data in an agent, asks for input, and survives kill -9", async () => {
  const client = await connect("/notes");
  expect(await use(client, "note", { text: "one" })).toBe('["one"]');
  expect(await use(client, "greet")).toBe("Hello Ann");
  server = await server.killAndRestart();
  expect(await use(client, "note", { text: "two" })).toBe('["one","two"]');
  await client.close();
});

test("an agent is the client of both kinds, also after kill -9 while its call runs", async () => {
  // A second try has another agent.
  const name = `both-${crypto.randomUUID()}`;
  const caller = connectAgent<{ results: string[] }>(server, "Caller", name);
  await caller.ready;
  const tally = (await caller.call("join", `${server.url}/mcp`)) as { id: string; state: string };
  const other = (await caller.call("join", `${server.url}/notes`)) as { id: string; state: string };
  expect([tally.state, other.state]).toEqual(["ready", "ready"]);
  expect(await caller.call("use", other.id, "greet", {})).toBe(`Hello ${name}`);
  expect(await caller.call("use", tally.id, "add", { amount: 2 })).toBe("2");
  const lost = caller.call("use", tally.id, "hold", {}).catch(() => "lost");
  // Its call is at the server when another of the same session sees what the tool stored.
  await expect.poll(() => caller.call("use", tally.id, "add", { amount: 0 })).toBe("102");
  server = await server.killAndRestart();
  expect(await lost).toBe("lost");
  await caller.ready;
  expect(await caller.call("use", tally.id, "add", { amount: 1 })).toBe("103");
  expect(await caller.call("use", other.id, "greet", {})).toBe(`Hello ${name}`);
  caller.close();
});
