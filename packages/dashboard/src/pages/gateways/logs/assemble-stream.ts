/**
 * Assembles the text of a streamed response from its stored events: OpenAI chat completion chunks and Responses events, Anthropic
 * content blocks, and Gemini candidates. Events of an unknown type are counted but otherwise ignored.
 */
export interface AssembledResponse {
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly { readonly name: string; readonly arguments: string }[];
  readonly finishReason: string | null;
  readonly events: number;
}

interface Draft {
  text: string;
  reasoning: string;
  tools: Map<string, { name: string; arguments: string }>;
  finishReason: string | null;
}

type Json = Readonly<Record<string, unknown>>;

/** Returns null if the body is not a stream of JSON events. */
export function assembleStream(body: string): AssembledResponse | null {
  const events = readEvents(body);
  if (events.length === 0) return null;
  const draft: Draft = { text: "", reasoning: "", tools: new Map(), finishReason: null };
  for (const event of events) {
    addOpenAiChunk(draft, event);
    addOpenAiResponse(draft, event);
    addAnthropic(draft, event);
    addGemini(draft, event);
  }
  return {
    text: draft.text,
    reasoning: draft.reasoning,
    toolCalls: [...draft.tools.values()],
    finishReason: draft.finishReason,
    events: events.length,
  };
}

function readEvents(body: string): Json[] {
  return body
    .split(/\r?\n/)
    .filter((line) => line.startsWith("data:"))
    .flatMap((line) => {
      try {
        const value: unknown = JSON.parse(line.slice(5));
        return isObject(value) ? [value] : [];
      } catch {
        // "[DONE]", or an event that was truncated at the end of the stored body.
        return [];
      }
    });
}

function addOpenAiChunk(draft: Draft, event: Json): void {
  for (const choice of objects(event["choices"])) {
    const delta = object(choice["delta"]);
    draft.text += text(delta["content"]);
    draft.reasoning += text(delta["reasoning_content"]) + text(delta["reasoning"]);
    for (const call of objects(delta["tool_calls"])) {
      const part = object(call["function"]);
      addTool(draft, `openai-${JSON.stringify(call["index"])}`, text(part["name"]), text(part["arguments"]));
    }
    if (typeof choice["finish_reason"] === "string") draft.finishReason = choice["finish_reason"];
  }
}

function addOpenAiResponse(draft: Draft, event: Json): void {
  const delta = text(event["delta"]);
  switch (event["type"]) {
    case "response.output_text.delta":
      draft.text += delta;
      break;
    case "response.reasoning_summary_text.delta":
      draft.reasoning += delta;
      break;
    case "response.output_item.added": {
      const item = object(event["item"]);
      if (item["type"] === "function_call") addTool(draft, text(item["id"]), text(item["name"]), "");
      break;
    }
    case "response.function_call_arguments.delta":
      addTool(draft, text(event["item_id"]), "", delta);
      break;
    case "response.completed":
      draft.finishReason = text(object(event["response"])["status"]);
      break;
    default:
  }
}

function addAnthropic(draft: Draft, event: Json): void {
  const key = `anthropic-${JSON.stringify(event["index"])}`;
  if (event["type"] === "content_block_start") {
    const block = object(event["content_block"]);
    if (block["type"] === "tool_use") addTool(draft, key, text(block["name"]), "");
  } else if (event["type"] === "content_block_delta") {
    const delta = object(event["delta"]);
    draft.text += text(delta["text"]);
    draft.reasoning += text(delta["thinking"]);
    if (typeof delta["partial_json"] === "string") addTool(draft, key, "", delta["partial_json"]);
  } else if (event["type"] === "message_delta") {
    const reason = object(event["delta"])["stop_reason"];
    if (typeof reason === "string") draft.finishReason = reason;
  }
}

function addGemini(draft: Draft, event: Json): void {
  for (const candidate of objects(event["candidates"])) {
    for (const part of objects(object(candidate["content"])["parts"])) {
      if (part["thought"] === true) draft.reasoning += text(part["text"]);
      else draft.text += text(part["text"]);
      const call = object(part["functionCall"]);
      if (typeof call["name"] === "string") {
        addTool(draft, `gemini-${draft.tools.size}`, call["name"], JSON.stringify(call["args"] ?? {}));
      }
    }
    if (typeof candidate["finishReason"] === "string") draft.finishReason = candidate["finishReason"];
  }
}

function addTool(draft: Draft, key: string, name: string, part: string): void {
  const tool = draft.tools.get(key) ?? { name: "", arguments: "" };
  tool.name += name;
  tool.arguments += part;
  draft.tools.set(key, tool);
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function object(value: unknown): Json {
  return isObject(value) ? value : {};
}

function objects(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
