/** Servers of the Model Context Protocol, with and without a session, and agents that are their clients. */
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { acceptedContent, inputRequired, McpServer as StatelessServer } from "@modelcontextprotocol/server";
import { Agent, callable, getAgentByName, routeAgentRequest } from "agents";
import { createLegacyMcpHandler, McpAgent } from "agents/mcp";
import { createMcpHandler } from "agents/mcp/server";
import { McpAgent as OlderMcpAgent } from "agents-14/mcp";
import { env } from "cloudflare:workers";
import { z } from "zod";
import { addTools } from "./tally";

/** A session has a total. */
export class Tally extends McpAgent<Env, { total: number }, { by: string }> {
  initialState = { total: 0 };
  server = new McpServer({ name: "tally", version: "1.0.0" });

  async init() {
    addTools(this.server, this);
  }
}

/** The same on an earlier version of the package. */
export class OlderTally extends OlderMcpAgent<Env, { total: number }, { by: string }> {
  initialState = { total: 0 };
  server = new McpServer({ name: "tally", version: "1.0.0" });

  async init() {
    addTools(this.server, this);
  }
}

/** Calls tools of the servers whose addresses it was given. */
export class Caller extends Agent<Env, { results: string[] }> {
  initialState = { results: [] as string[] };

  /** Not in `onStart`, which runs after the class has begun to connect again: it would replace the client that is connecting. */
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.mcp.configureElicitationHandlers({
      form: async () => ({ action: "accept" as const, content: { name: this.name } }),
    });
  }

  @callable()
  async join(url: string) {
    const { id, state } = await this.addMcpServer("tally", url);
    return { id, state, tools: this.getMcpServers().tools.map(({ name }) => name) };
  }

  @callable()
  async use(serverId: string, name: string, args: Record<string, unknown>) {
    await this.mcp.waitForConnections({ timeout: 600_000 });
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

  /** For the server without sessions, whose tools keep their data in an agent. */
  note(text: string) {
    this.setState({ results: [...this.state.results, text] });
    return this.state.results;
  }
}

function createEcho() {
  const server = new McpServer({ name: "echo", version: "1.0.0" });
  server.registerTool("echo", { inputSchema: { text: z.string() } }, async ({ text }) => ({
    content: [{ type: "text", text }],
  }));
  return server;
}

const NAME = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };

/** A server of the SDK's later version: a new one for each request. */
const notes = createMcpHandler(
  () => {
    const server = new StatelessServer({ name: "notes", version: "1.0.0" });
    server.registerTool("note", { inputSchema: z.object({ text: z.string() }) }, async ({ text }) => {
      const agent = await getAgentByName<Env, Caller>(env.Caller, "notes");
      return { content: [{ type: "text", text: JSON.stringify(await agent.note(text)) }] };
    });
    server.registerTool("greet", { inputSchema: z.object({}) }, async (_args, context) => {
      const answer = acceptedContent(context.mcpReq.inputResponses, "name", z.object({ name: z.string() }));
      if (answer) return { content: [{ type: "text", text: `Hello ${answer.name}` }] };
      return inputRequired({
        inputRequests: { name: inputRequired.elicit({ message: "Who are you?", requestedSchema: NAME }) },
      });
    });
    return server;
  },
  { route: "/notes" },
);

export default {
  async fetch(request: Request, env: Env, ctx: ExecutionContext) {
    const { pathname } = new URL(request.url);
    if (pathname === "/echo")
      return createLegacyMcpHandler(createEcho(), { route: "/echo" })(request, env, ctx);
    if (pathname === "/notes") return notes(request, env, ctx);
    ctx.props = { by: request.headers.get("x-by") ?? "a guest" };
    if (pathname.startsWith("/sse"))
      return Tally.serveSSE("/sse", { binding: "TALLY" }).fetch(request, env, ctx);
    if (pathname === "/mcp") return Tally.serve("/mcp", { binding: "TALLY" }).fetch(request, env, ctx);
    if (pathname === "/older")
      return OlderTally.serve("/older", { binding: "OLDER" }).fetch(request, env, ctx);
    return (await routeAgentRequest(request, env)) ?? new Response("nothing here", { status: 404 });
  },
};
