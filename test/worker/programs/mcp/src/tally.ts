/** The tools of a session that has a total: the same for each version of the class with sessions. */
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { z } from "zod";

export interface Session {
  readonly state: { readonly total: number };
  readonly props?: { readonly by: string };
  setState(state: { total: number }): void;
}

export function addTools(server: McpServer, session: Session): void {
  server.registerTool(
    "add",
    { description: "Adds to the total of the session", inputSchema: { amount: z.number() } },
    async ({ amount }) => {
      session.setState({ total: session.state.total + amount });
      return { content: [{ type: "text", text: String(session.state.total) }] };
    },
  );
  server.registerTool("who", { inputSchema: {} }, async () => ({
    content: [{ type: "text", text: session.props?.by ?? "nobody" }],
  }));
  server.registerTool("slow", { inputSchema: {} }, async (_, { sendNotification, _meta }) => {
    for (let step = 1; step <= 3; step += 1) {
      await sendNotification({
        method: "notifications/progress",
        params: { progressToken: _meta.progressToken, progress: step, total: 3 },
      });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return { content: [{ type: "text", text: "slowly" }] };
  });
  // It waits for timers only, and for longer than an idle agent of the test stays in memory.
  server.registerTool("patient", { inputSchema: {} }, async () => {
    for (let step = 1; step <= 2; step += 1) await new Promise((resolve) => setTimeout(resolve, 500));
    return { content: [{ type: "text", text: "at last" }] };
  });
  server.registerTool("hold", { inputSchema: {} }, async (_, { sendNotification, _meta }) => {
    session.setState({ total: session.state.total + 100 });
    if (_meta !== undefined)
      await sendNotification({
        method: "notifications/progress",
        params: { progressToken: _meta.progressToken, progress: 1, total: 2 },
      });
    // The test ends the process while the tool runs.
    await new Promise((resolve) => setTimeout(resolve, 600_000));
    return { content: [{ type: "text", text: "held" }] };
  });
  server.registerTool("fail", { inputSchema: {} }, async () => {
    throw new Error("as asked");
  });
  server.registerResource("total", "tally://total", {}, (uri) => ({
    contents: [{ uri: uri.href, text: String(session.state.total) }],
  }));
}
