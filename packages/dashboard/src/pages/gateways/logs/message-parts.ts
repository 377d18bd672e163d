/** Reads the messages of request and response bodies: OpenAI chat and Responses, Anthropic messages, Gemini. A body of another form has none. */

export type MessagePart =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "reasoning"; readonly text: string }
  | { readonly kind: "image"; readonly address: string }
  | { readonly kind: "tool-call"; readonly name: string; readonly input: unknown }
  | { readonly kind: "tool-result"; readonly name: string; readonly output: unknown }
  | { readonly kind: "other"; readonly value: unknown };

export interface Message {
  readonly role: string;
  readonly parts: readonly MessagePart[];
}

type Json = Readonly<Record<string, unknown>>;

export function requestMessages(json: string): Message[] {
  const body = parseObject(json);
  const instruction = body["systemInstruction"] ?? body["system_instruction"];
  const system = body["system"] ?? body["instructions"] ?? object(instruction)["parts"];
  const input = body["messages"] ?? body["contents"] ?? body["input"] ?? body["prompt"];
  const systemParts = system === undefined ? [] : partsOf(system);
  return [
    ...(systemParts.length === 0 ? [] : [{ role: "system", parts: systemParts }]),
    ...(typeof input === "string"
      ? [{ role: "user", parts: [{ kind: "text", text: input } as const] }]
      : objects(input).flatMap(messageOf)),
  ];
}

export function responseMessages(json: string): Message[] {
  const body = parseObject(json);
  const choices = objects(body["choices"]).flatMap((choice) => {
    const text = choice["text"];
    return typeof text === "string" ? [{ role: "assistant", content: text }] : [object(choice["message"])];
  });
  const candidates = objects(body["candidates"]).map((candidate) => ({
    role: "assistant",
    ...object(candidate["content"]),
  }));
  const found = [...choices, ...candidates, ...objects(body["output"])].flatMap(messageOf);
  if (found.length > 0) return found;
  if (body["role"] === "assistant") return messageOf(body);
  const images = objects(body["data"]).flatMap(generatedImage);
  return images.length === 0 ? [] : [{ role: "assistant", parts: images }];
}

/** The message of an error body, whichever provider sent it; null if there is none. */
export function errorMessage(json: string): string | null {
  const body = parseObject(json);
  const first = objects(body["errors"])[0] ?? objects(parse(json))[0];
  const candidates = [
    object(body["error"])["message"],
    body["error"],
    first?.["message"],
    body["message"],
    body["detail"],
  ];
  const text = candidates.find((value) => typeof value === "string" && value !== "");
  return typeof text === "string" ? text : null;
}

function messageOf(message: Json): Message[] {
  const parts = messageParts(message);
  return parts.length === 0 ? [] : [{ role: roleOf(message), parts }];
}

function messageParts(message: Json): MessagePart[] {
  const own = partOf(message);
  if (own !== null && own.kind !== "text" && own.kind !== "other") return [own];
  const role = message["role"];
  if (role === "tool" || role === "function") {
    const name = text(message["name"]) || text(message["tool_call_id"]);
    return [{ kind: "tool-result", name, output: readable(message["content"]) }];
  }
  const reasoning = text(message["reasoning_content"]) || text(message["reasoning"]);
  return [
    ...(reasoning === "" ? [] : [{ kind: "reasoning", text: reasoning } as const]),
    ...partsOf(message["content"] ?? message["parts"] ?? message["text"]),
    ...objects(message["tool_calls"]).map(toolCall),
  ];
}

function partsOf(content: unknown): MessagePart[] {
  if (typeof content === "string") return content === "" ? [] : [{ kind: "text", text: content }];
  return objects(Array.isArray(content) ? content : [content]).map(
    (part) => partOf(part) ?? { kind: "other", value: part },
  );
}

/** Null if the part is of no known type. */
function partOf(part: Json): MessagePart | null {
  switch (part["type"]) {
    case "tool_use":
      return { kind: "tool-call", name: text(part["name"]), input: part["input"] };
    case "function_call":
      return { kind: "tool-call", name: text(part["name"]), input: parse(text(part["arguments"])) };
    case "tool_result":
      return { kind: "tool-result", name: text(part["tool_use_id"]), output: readable(part["content"]) };
    case "function_call_output":
      return { kind: "tool-result", name: text(part["call_id"]), output: readable(part["output"]) };
    case "thinking":
      return { kind: "reasoning", text: text(part["thinking"]) };
    case "reasoning":
      return {
        kind: "reasoning",
        text: objects(part["summary"])
          .map((one) => text(one["text"]))
          .join("\n"),
      };
    default:
  }
  const image = imageOf(part);
  if (image !== null) return { kind: "image", address: image };
  const call = part["functionCall"] ?? part["function_call"];
  if (call !== undefined && part["role"] === undefined)
    return { kind: "tool-call", name: text(object(call)["name"]), input: object(call)["args"] };
  const result = part["functionResponse"];
  if (result !== undefined)
    return { kind: "tool-result", name: text(object(result)["name"]), output: object(result)["response"] };
  if (typeof part["text"] !== "string") return null;
  return { kind: part["thought"] === true ? "reasoning" : "text", text: part["text"] };
}

function imageOf(part: Json): string | null {
  const url = part["image_url"];
  if (typeof url === "string") return url;
  if (typeof object(url)["url"] === "string") return text(object(url)["url"]);
  const source = part["type"] === "image" ? object(part["source"]) : {};
  if (typeof source["data"] === "string")
    return `data:${text(source["media_type"])};base64,${source["data"]}`;
  if (typeof source["url"] === "string") return source["url"];
  const inline = object(part["inlineData"] ?? part["inline_data"]);
  if (typeof inline["data"] === "string")
    return `data:${text(inline["mimeType"]) || text(inline["mime_type"])};base64,${inline["data"]}`;
  return null;
}

function generatedImage(item: Json): MessagePart[] {
  if (typeof item["b64_json"] === "string")
    return [{ kind: "image", address: `data:image/png;base64,${item["b64_json"]}` }];
  return typeof item["url"] === "string" ? [{ kind: "image", address: item["url"] }] : [];
}

function toolCall(call: Json): MessagePart {
  const details = object(call["function"] ?? call["custom"] ?? call);
  return {
    kind: "tool-call",
    name: text(details["name"]),
    input:
      typeof details["arguments"] === "string"
        ? parse(details["arguments"])
        : (details["input"] ?? details["arguments"]),
  };
}

/** The text of content that has only text, otherwise the content; JSON in a text is parsed. */
function readable(content: unknown): unknown {
  if (typeof content === "string") return parse(content);
  const parts = objects(content);
  return parts.length > 0 && parts.every((part) => typeof part["text"] === "string")
    ? parse(parts.map((part) => text(part["text"])).join("\n"))
    : content;
}

function roleOf(message: Json): string {
  if (typeof message["role"] === "string") return message["role"];
  return message["type"] === "function_call_output" ? "tool" : "assistant";
}

/** The value of a JSON text; any other text is itself. */
function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

function parseObject(json: string): Json {
  return object(parse(json));
}

function object(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

function objects(value: unknown): Json[] {
  return Array.isArray(value)
    ? value.filter((item): item is Json => typeof item === "object" && item !== null && !Array.isArray(item))
    : [];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
