/** The inputs of `AI.run` as a request to a provider with OpenAI's dialect. */
import type { ModelTarget } from "./model-names.ts";

/** Decides the endpoint, and how the answer is translated back. */
export type ModelTask = "chat" | "embeddings" | "responses";

export interface ModelRequest {
  readonly task: ModelTask;
  /** Path below the provider. */
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly isStream: boolean;
}

const PATHS: Readonly<Record<ModelTask, string>> = {
  chat: "chat/completions",
  embeddings: "embeddings",
  responses: "responses",
};

/** Inputs of the originals that no provider understands. */
const DROPPED: ReadonlySet<string> = new Set(["raw", "lora", "prompt", "text", "pooling", "functions"]);

export function toModelRequest({ model }: ModelTarget, inputs: unknown): ModelRequest {
  if (typeof inputs !== "object" || inputs === null) throw invalid("the inputs of a model must be an object");
  const given = inputs as Record<string, unknown>;
  const task = taskOf(given);
  const rest = Object.fromEntries(
    Object.entries(given).filter(
      ([name, value]) => !DROPPED.has(name) && value !== undefined && value !== null,
    ),
  );
  const isStream = task !== "embeddings" && given["stream"] === true;
  const body = {
    ...rest,
    model,
    ...(task === "chat" ? { messages: messagesOf(given) } : {}),
    ...(task === "chat" && Array.isArray(given["tools"]) ? toolsOf(given["tools"]) : {}),
    ...(task === "embeddings" ? { input: given["text"] } : {}),
    // The last event of a stream then has the usage, which the log and the program need.
    ...(task === "chat" && isStream ? { stream_options: { include_usage: true } } : {}),
  };
  return { task, path: PATHS[task], body, isStream };
}

function taskOf(inputs: Readonly<Record<string, unknown>>): ModelTask {
  if (Array.isArray(inputs["messages"]) || typeof inputs["prompt"] === "string") return "chat";
  if (typeof inputs["text"] === "string" || Array.isArray(inputs["text"])) return "embeddings";
  if (inputs["input"] !== undefined) return "responses";
  throw invalid(
    "the inputs have none of messages, prompt, text and input: only text generation and text embeddings are available on Signalbox",
  );
}

function messagesOf(inputs: Readonly<Record<string, unknown>>): unknown {
  return inputs["messages"] ?? [{ role: "user", content: inputs["prompt"] }];
}

/** The originals also accept the bare description of a function. */
function toolsOf(tools: readonly unknown[]): Readonly<Record<string, unknown>> {
  if (tools.length === 0) return { tools: undefined };
  return {
    tools: tools.map((tool) =>
      typeof tool === "object" && tool !== null && !("type" in tool)
        ? { type: "function", function: tool }
        : tool,
    ),
  };
}

function invalid(message: string): Error {
  return new Error(`5004: ${message}`);
}
