/** A chat with tools: one runs at once, one needs approval, one runs in the browser. */
import { AIChatAgent } from "@cloudflare/ai-chat";
import { routeAgentRequest } from "agents";
import { convertToModelMessages, stepCountIs, streamText, tool } from "ai";
import { createWorkersAI } from "workers-ai-provider";
import { z } from "zod";

export class Chat extends AIChatAgent<Env> {
  async onChatMessage(onFinish: unknown, options?: { abortSignal?: AbortSignal }) {
    const workersai = createWorkersAI({ binding: this.env.AI });
    const result = streamText({
      model: workersai("@cf/test/chat"),
      messages: await convertToModelMessages(this.messages),
      abortSignal: options?.abortSignal,
      maxRetries: 0,
      stopWhen: stepCountIs(4),
      tools: {
        weather: tool({
          description: "The weather of a city",
          inputSchema: z.object({ city: z.string() }),
          execute: async ({ city }) => `rain in ${city}`,
        }),
        pay: tool({
          description: "Pays an amount",
          inputSchema: z.object({ amount: z.number() }),
          needsApproval: async ({ amount }) => amount > 100,
          execute: async ({ amount }) => {
            this.sql`CREATE TABLE IF NOT EXISTS payment (amount INTEGER NOT NULL)`;
            this.sql`INSERT INTO payment (amount) VALUES (${amount})`;
            return `paid ${amount}`;
          },
        }),
        place: tool({ description: "Where the user is", inputSchema: z.object({}) }),
      },
    });
    return result.toUIMessageStreamResponse();
  }
}

export default {
  async fetch(request: Request, env: Env) {
    return (
      (await routeAgentRequest(request, env, { cors: true })) ?? new Response("nothing here", { status: 404 })
    );
  },
};
