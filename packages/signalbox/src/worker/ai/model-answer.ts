/**
 * A provider's answer as `AI.run` returns it. Answers to models with a name of the originals (`@cf/…`) have the originals' form besides the
 * provider's: `response`, `tool_calls` with parsed arguments, `data` and `shape` of embeddings. Answers to other models are the provider's own.
 */
import type { ModelTask } from "./model-request.ts";

interface ToolCall {
  readonly id?: string;
  readonly function?: { readonly name?: string; readonly arguments?: string };
}
interface Choice {
  readonly message?: { readonly content?: string | null; readonly tool_calls?: readonly ToolCall[] };
  readonly delta?: { readonly content?: string | null; readonly tool_calls?: readonly ToolCall[] };
}

export function toAnswer(task: ModelTask, body: unknown): unknown {
  if (typeof body !== "object" || body === null) return body;
  if (task === "embeddings") return toEmbeddings(body);
  if (task !== "chat") return body;
  const { choices } = body as { choices?: readonly Choice[] };
  const message = choices?.[0]?.message;
  if (message === undefined) return body;
  const calls = message.tool_calls?.map((call) => ({
    ...call,
    name: call.function?.name,
    arguments: parseArguments(call.function?.arguments),
  }));
  return { ...body, response: message.content ?? "", ...(calls === undefined ? {} : { tool_calls: calls }) };
}

function toEmbeddings(body: { data?: unknown }): unknown {
  if (!Array.isArray(body.data)) return body;
  const data = (body.data as { embedding?: readonly number[] }[]).map(({ embedding }) => embedding ?? []);
  return { ...body, shape: [data.length, data[0]?.length ?? 0], data };
}

/** Arguments that are not JSON stay text: the program sees what the model wrote. */
function parseArguments(text: string | undefined): unknown {
  try {
    return JSON.parse(text === undefined || text === "" ? "{}" : text);
  } catch {
    return text;
  }
}

/**
 * Moves text and tool calls of each event from `choices[0].delta` to `response` and `tool_calls`: a program that reads both forms must not see
 * the text twice. Other events pass unchanged.
 */
export function toNativeStream(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let rest = "";
  const push = (lines: readonly string[], controller: TransformStreamDefaultController) => {
    if (lines.length > 0) controller.enqueue(encoder.encode(`${lines.map(toNativeLine).join("\n")}\n`));
  };
  return body.pipeThrough(
    new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform(chunk, controller) {
        const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
        rest = lines.pop() ?? "";
        push(lines, controller);
      },
      flush(controller) {
        rest += decoder.decode();
        if (rest !== "") push([rest], controller);
      },
    }),
  );
}

function toNativeLine(line: string): string {
  if (!line.startsWith("data:")) return line;
  const text = line.slice("data:".length).trim();
  if (text === "[DONE]") return line;
  let event: { choices?: readonly Choice[] };
  try {
    event = JSON.parse(text) as { choices?: readonly Choice[] };
  } catch {
    return line;
  }
  const [first, ...others] = event.choices ?? [];
  const delta = first?.delta;
  if (delta === undefined) return `data: ${JSON.stringify({ response: "", ...event })}`;
  const { content, tool_calls: calls, ...left } = delta;
  return `data: ${JSON.stringify({
    ...event,
    choices: [{ ...first, delta: left }, ...others],
    response: content ?? "",
    ...(calls === undefined ? {} : { tool_calls: calls }),
  })}`;
}
