/** Servers of the Model Context Protocol, with and without a session, and an agent that is their client. */
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { Agent, callable, routeAgentRequest } from "agents";
// The class with sessions, of the last version that needs no other package than the SDK.
import { createMcpHandler, McpAgent } from "agents-14/mcp";
import { z } from "zod";

/** A session has a total. */
export class Tally extends McpAgent<Env, { total: number }, { by: string }> {
  initialState = { total: 0 };
  server = new McpServer({ name: "tally", version: "1.0.0" });

  async init() {
    this.server.registerTool(
      "add",
      { description: "Adds to the total of the session", inputSchema: { amount: z.number() } },
      async ({ amount }) => {
        this.setState({ total: this.state.total + amount });
        return { content: [{ type: "text", text: String(this.state.total) }] };
      },
    );
    this.server.registerTool("who", { inputSchema: {} }, async () => ({
      content: [{ type: "text", text: this.props?.by ?? "nobody" }],
    }));
    this.server.registerTool("slow", { inputSchema: {} }, async (_, { sendNotification, _meta }) => {
      for (let step = 1; step <= 3; step += 1) {
        await sendNotification({
          method: "notifications/progress",
          params: { progressToken: _meta.progressToken, progress: step, total: 3 },
        });
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      return { content: [{ type: "text", text: "slowly" }] };
    });
    this.server.registerTool("fail", { inputSchema: {} }, async () => {
      throw new Error("as asked");
    });
    this.server.registerResource("total", "tally://total", {}, (uri) => ({
      contents: [{ uri: uri.href, text: String(this.state.total) }],
    }));
  }
}

/** Calls tools of the server whose address it was given. */
export class Caller extends Agent<Env, { results: string[] }> {
  initialState = { results: [] as string[] };

  @callable()
  async join(url: string) {
    const { id, state } = await this.addMcpServer("tally", url);
    return { id, state, tools: this.getMcpServers().tools.map(({ name }) => name) };
  }

  @callable()
  async use(serverId: string, name: string, args: Record<string, unknown>) {
    await this.mcp.waitForConnections({ timeout: 10_000 });
    const { content } = await this.mcp.callTool({ serverId, name, arguments: args });
    const [{ text }] = content as { text: string }[];
    this.setState({ results: [...this.state.results, text] });
    return text;
  }

  @callable()
  async leave(id: string) {
    await this.removeMcpServer(id);
    return Object.keys(this.getMcpServers().servers);
  }
}

function createEcho() {
  const server = new McpServer({ name: "echo", version: "1.0.0" });
  server.registerTool("echo", { inputSchema: { text: z.string() } }, async ({ text }) => ({
    content: [{ type: "text", text }],
  }));
  return server;
}

export default {
  async fetch(request: Request, env: Env, ctx: ExecutionContext) {
    const { pathname } = new URL(request.url);
    if (pathname === "/echo") return createMcpHandler(createEcho(), { route: "/echo" })(request, env, ctx);
    ctx.props = { by: request.headers.get("x-by") ?? "a guest" };
    if (pathname.startsWith("/sse"))
      return Tally.serveSSE("/sse", { binding: "TALLY" }).fetch(request, env, ctx);
    if (pathname === "/mcp") return Tally.serve("/mcp", { binding: "TALLY" }).fetch(request, env, ctx);
    return (await routeAgentRequest(request, env)) ?? new Response("nothing here", { status: 404 });
  },
};
