/** Models through the binding: the binding itself, the published provider with the AI SDK, and a chat. Routes with hono. */
import { AIChatAgent } from "@cloudflare/ai-chat";
import { Agent } from "agents";
import {
  convertToModelMessages,
  embedMany,
  generateText,
  jsonSchema,
  stepCountIs,
  streamText,
  tool,
} from "ai";
import { Hono } from "hono";
import { agentsMiddleware } from "hono-agents";
import { createWorkersAI } from "workers-ai-provider";

export class Thinker extends Agent<Env> {
  get provider() {
    return createWorkersAI({ binding: this.env.MODELS });
  }

  async generate(model: string, prompt: string) {
    const { text, usage, finishReason } = await generateText({
      model: this.provider(model),
      prompt,
      maxRetries: 0,
    });
    return { text, input: usage.inputTokens, output: usage.outputTokens, finishReason };
  }

  async stream(model: string, prompt: string) {
    const result = streamText({ model: this.provider(model), prompt, maxRetries: 0 });
    const pieces: string[] = [];
    for await (const piece of result.textStream) pieces.push(piece);
    return { pieces, usage: (await result.usage).outputTokens };
  }

  async withTool(model: string) {
    const called: unknown[] = [];
    const { text } = await generateText({
      model: this.provider(model),
      prompt: "What is 2 + 3?",
      stopWhen: stepCountIs(3),
      tools: {
        add: tool({
          description: "Adds two numbers",
          inputSchema: jsonSchema<{ a: number; b: number }>({
            type: "object",
            properties: { a: { type: "number" }, b: { type: "number" } },
            required: ["a", "b"],
          }),
          execute: async ({ a, b }) => {
            called.push([a, b]);
            return { sum: a + b };
          },
        }),
      },
    });
    return { text, called };
  }

  async embed(model: string, values: string[]) {
    const { embeddings } = await embedMany({ model: this.provider.textEmbedding(model), values });
    return embeddings;
  }

  /** The binding without a library. */
  async run(model: string, inputs: Record<string, unknown>, options?: Record<string, unknown>) {
    try {
      const result = await this.env.MODELS.run(model, inputs, options);
      if (result instanceof ReadableStream) return { stream: await new Response(result).text() };
      if (result instanceof Response)
        return {
          status: result.status,
          logId: result.headers.get("cf-aig-log-id") !== null,
          text: await result.text(),
        };
      return { result, log: this.env.MODELS.aiGatewayLogId };
    } catch (error) {
      return { error: error.message, name: error.name, status: error.status };
    }
  }

  async gateway() {
    const gateway = this.env.MODELS.gateway("default");
    const response = await gateway.run({
      provider: "echo",
      endpoint: "chat/completions",
      headers: { "content-type": "application/json" },
      query: { model: "echo", messages: [{ role: "user", content: "universal" }] },
    });
    const logId = response.headers.get("cf-aig-log-id");
    await response.text();
    await gateway.patchLog(logId, { score: 7, feedback: 1 });
    const { provider, score } = await gateway.getLog(logId);
    return { status: response.status, url: await gateway.getUrl("openai"), provider, score };
  }

  async others() {
    const names = (await this.env.MODELS.models()).map(({ name }) => name);
    let markdown = "";
    try {
      this.env.MODELS.toMarkdown([]);
    } catch (error) {
      markdown = error.message;
    }
    return { names, markdown };
  }
}

export class Chat extends AIChatAgent<Env> {
  async onChatMessage() {
    const workersai = createWorkersAI({ binding: this.env.MODELS });
    const result = streamText({
      model: workersai("@cf/meta/llama-3.3-70b-instruct-fp8-fast"),
      messages: await convertToModelMessages(this.messages),
    });
    return result.toUIMessageStreamResponse();
  }
}

const app = new Hono<{ Bindings: Env }>();
app.use("*", agentsMiddleware());
app.post("/think/:name/:method", async (c) => {
  const thinker = c.env.Thinker.getByName(c.req.param("name"));
  return c.json(await thinker[c.req.param("method")](...(await c.req.json())));
});
app.get("/outside", async (c) =>
  c.json(
    await c.env.MODELS.run(
      "@cf/meta/x",
      { prompt: "from the worker" },
      { gateway: { metadata: { a: "b" } } },
    ),
  ),
);

export default app;
