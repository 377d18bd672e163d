/** Stands for the providers' hosts, which tests cannot reach: a chat completion or a message, whole or as a stream, for whatever is asked. */
import type { ServerResponse } from "node:http";
import { type ProviderPeer, sendJson, startProvider } from "../../peers/provider.ts";

const BUILT_IN = ["openai", "anthropic", "groq", "mistral", "openrouter", "deepseek"];

export function providersAt(url: string): Record<string, { baseUrl: string }> {
  return Object.fromEntries(BUILT_IN.map((name) => [name, { baseUrl: url }]));
}

export async function startChatProvider(): Promise<ProviderPeer> {
  return startProvider((request, response) => {
    const { model, stream } = JSON.parse(request.body || "{}") as { model?: string; stream?: boolean };
    if (stream === true) sendStream(response, model);
    else sendJson(response, 200, request.url.includes("messages") ? message(model) : completion(model));
  });
}

function completion(model = "gpt-5") {
  return {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1_760_000_000,
    model,
    choices: [{ index: 0, message: { role: "assistant", content: "Hello!" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 },
  };
}

function message(model = "claude") {
  return {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model,
    content: [{ type: "text", text: "Hello!" }],
    stop_reason: "end_turn",
    usage: { input_tokens: 9, output_tokens: 2 },
  };
}

function sendStream(response: ServerResponse, model = "gpt-5"): void {
  const chunk = (delta: object, finish: string | null) =>
    `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", model, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(
    `${chunk({ role: "assistant", content: "Hello!" }, null)}${chunk({}, "stop")}data: [DONE]\n\n`,
  );
}
