/** An `McpAgent` for the clients of both SDKs: 1.x begins with `initialize`, 2.x asks first whether the server speaks the protocol without sessions. */
import {
  Client as LaterClient,
  StreamableHTTPClientTransport as LaterTransport,
} from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startWorker, type WorkerServer } from "./support/worker-server.ts";

let server: WorkerServer;
beforeAll(async () => {
  server = await startWorker("mcp/src/server.ts");
});
afterAll(() => server.remove());

const ASKER = { name: "test", version: "1.0.0" };
const options = (by: string) => ({ requestInit: { headers: { "x-by": by } } });

async function connectEarlier(by: string) {
  const client = new Client(ASKER);
  await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), options(by)));
  return client;
}

async function connectLater(by: string) {
  const client = new LaterClient(ASKER, { versionNegotiation: { mode: "auto" } });
  await client.connect(new LaterTransport(new URL(`${server.url}/mcp`), options(by)));
  return client;
}

describe.each([
  ["1.x", connectEarlier],
  ["2.x", connectLater],
] as const)("a client of the SDK %s", (_version, connect) => {
  const use = async (client: Awaited<ReturnType<typeof connect>>, name: string, args = {}) => {
    const { content } = await client.callTool({ name, arguments: args });
    return (content as { text: string }[])[0]?.text;
  };

  test("lists tools and resources, and calls tools of its session only", async () => {
    const [ann, ben] = [await connect("ann"), await connect("ben")];
    expect(ann.getServerVersion()).toMatchObject({ name: "tally" });
    expect((await ann.listTools()).tools.map(({ name }) => name)).toEqual([
      "add",
      "who",
      "slow",
      "patient",
      "hold",
      "fail",
    ]);
    expect((await ann.listResources()).resources).toMatchObject([{ name: "total", uri: "tally://total" }]);
    expect([await use(ann, "add", { amount: 4 }), await use(ben, "add", { amount: 1 })]).toEqual(["4", "1"]);
    expect(await use(ann, "add", { amount: 5 })).toBe("9");
    expect([await use(ann, "who"), await use(ben, "who")]).toEqual(["ann", "ben"]);
    expect(await ann.readResource({ uri: "tally://total" })).toMatchObject({ contents: [{ text: "9" }] });
    await Promise.all([ann.close(), ben.close()]);
  });

  test("sees failures of tools and wrong arguments as results, and calls side by side", async () => {
    const client = await connect("ann");
    expect(await client.callTool({ name: "fail", arguments: {} })).toMatchObject({
      isError: true,
      content: [{ text: "as asked" }],
    });
    expect(await client.callTool({ name: "add", arguments: { amount: "x" } })).toMatchObject({
      isError: true,
    });
    const sums = await Promise.all(Array.from({ length: 5 }, () => use(client, "add", { amount: 1 })));
    expect(sums.map(Number).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5]);
    await client.close();
  });

  test("gets progress while a tool runs", async () => {
    const client = await connect("ann");
    const seen: number[] = [];
    const onprogress = ({ progress }: { progress: number }) => void seen.push(progress);
    const call = { name: "slow", arguments: {} };
    if (client instanceof LaterClient) await client.callTool(call, { onprogress });
    else await client.callTool(call, undefined, { onprogress });
    expect(seen).toEqual([1, 2, 3]);
    await client.close();
  });
});
