/**
 * Amazon Bedrock's Converse API, which all of its models share, as another spelling of Anthropic's messages: a request is translated into messages and
 * then written as Converse; a response and its stream are read as messages. Both APIs have the same blocks, so nothing is lost between them but what a
 * model does not take.
 */
import { type Fields, isFields } from "../../core/fields.ts";
import { type AwsMessage, readAwsPayload } from "../../engines/relay/index.ts";
import type { BodyForm } from "./provider-api.ts";

/** Stands for a limit that the client did not set: the model has its own, and refuses a higher one. */
export const UNSET_LIMIT = Number.MAX_SAFE_INTEGER;

/** Only Amazon's own models take marks of the prompt cache here; Claude has its own API. */
const TAKES_CACHE_POINTS = /(?:^|[./])amazon\.nova/;

export const CONVERSE: BodyForm = { toBody: toConverse, fromBody: fromConverse };

/** A request of messages as one of Converse. */
function toConverse(body: Fields, model: string): Fields {
  const marks = TAKES_CACHE_POINTS.test(model);
  const { system, messages, tools, tool_choice: choice } = body;
  const { max_tokens: limit, temperature, top_p: topP, stop_sequences: stops } = body;
  const toolConfig =
    Array.isArray(tools) && tools.length > 0 ? toToolConfig(tools as Fields[], choice) : null;
  return {
    messages: (Array.isArray(messages) ? (messages as Fields[]) : []).map(({ role, content }) => ({
      role,
      content: toBlocks(content, marks),
    })),
    ...(system === undefined ? {} : { system: toBlocks(system, marks) }),
    inferenceConfig: {
      ...(limit === undefined || limit === UNSET_LIMIT ? {} : { maxTokens: limit }),
      ...(temperature === undefined ? {} : { temperature }),
      ...(topP === undefined ? {} : { topP }),
      ...(stops === undefined ? {} : { stopSequences: stops }),
    },
    ...(toolConfig === null ? {} : { toolConfig }),
  };
}

/** No tool may be chosen, so none is offered. */
function toToolConfig(tools: readonly Fields[], choice: unknown): Fields | null {
  const chosen = isFields(choice) ? choice : {};
  if (chosen["type"] === "none") return null;
  return {
    tools: tools.map(({ name, description, input_schema: json }) => ({
      toolSpec: { name, ...(description === undefined ? {} : { description }), inputSchema: { json } },
    })),
    ...(chosen["type"] === "any" ? { toolChoice: { any: {} } } : {}),
    ...(chosen["type"] === "tool" ? { toolChoice: { tool: { name: chosen["name"] } } } : {}),
  };
}

function toBlocks(content: unknown, marks: boolean): Fields[] {
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : (content as Fields[]);
  return blocks.flatMap((block): Fields[] => {
    const own = toBlock(block);
    if (own === null) return [];
    return marks && block["cache_control"] !== undefined ? [own, { cachePoint: { type: "default" } }] : [own];
  });
}

/** Null for a block that has no counterpart. Reasoning of other models is not sent back: it is signed. */
function toBlock(block: Fields): Fields | null {
  switch (block["type"]) {
    case "text":
      // The provider refuses a text without visible characters.
      return String(block["text"]).trim() === "" ? null : { text: block["text"] };
    case "image":
      return toMedia("image", block);
    case "document":
      return toMedia("document", block);
    case "tool_use":
      return { toolUse: { toolUseId: block["id"], name: block["name"], input: block["input"] ?? {} } };
    case "tool_result":
      return {
        toolResult: {
          toolUseId: block["tool_use_id"],
          content: toBlocks(block["content"] ?? "", false),
          ...(block["is_error"] === true ? { status: "error" } : {}),
        },
      };
    default:
      return null;
  }
}

/** Names of formats that are not the end of their media type. */
const FORMATS: ReadonlyMap<string, string> = new Map([
  ["plain", "txt"],
  ["markdown", "md"],
  ["msword", "doc"],
]);

function toMedia(kind: "image" | "document", { source, title }: Fields): Fields {
  const { type, data, media_type: mediaType } = isFields(source) ? source : ({} as Fields);
  const usual = kind === "image" ? "image/png" : "application/pdf";
  const subtype = (typeof mediaType === "string" ? mediaType : usual).split("/")[1] ?? "";
  const format = FORMATS.get(subtype) ?? subtype;
  if (type !== "base64" && type !== "text") {
    throw new UnsupportedMedia(`${kind}: this model takes data, and no addresses`);
  }
  const bytes = type === "text" ? Buffer.from(String(data)).toString("base64") : data;
  if (kind === "image") return { image: { format, source: { bytes } } };
  // The provider takes letters, digits, spaces, hyphens and brackets.
  const name = (typeof title === "string" ? title : "document")
    .replaceAll(/[^\w ()[\]-]+/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
  return { document: { format, name: name === "" ? "document" : name, source: { bytes } } };
}

/** A part of a request that Converse cannot express. */
export class UnsupportedMedia extends Error {}

/** A response of Converse as a message. */
function fromConverse(body: unknown): unknown {
  if (!isFields(body) || !isFields(body["output"])) return body;
  const { output, stopReason, usage } = body;
  const message = isFields(output["message"]) ? output["message"] : {};
  const content = Array.isArray(message["content"]) ? (message["content"] as Fields[]) : [];
  return {
    type: "message",
    role: "assistant",
    content: content.flatMap(fromBlock),
    stop_reason: toStopReason(stopReason),
    stop_sequence: null,
    usage: toUsage(usage),
  };
}

function fromBlock(block: Fields): Fields[] {
  const { text, toolUse, reasoningContent: reasoning } = block;
  if (typeof text === "string") return [{ type: "text", text }];
  if (isFields(toolUse)) {
    return [
      { type: "tool_use", id: toolUse["toolUseId"], name: toolUse["name"], input: toolUse["input"] ?? {} },
    ];
  }
  const thought =
    isFields(reasoning) && isFields(reasoning["reasoningText"]) ? reasoning["reasoningText"] : null;
  return thought === null ? [] : [{ type: "thinking", thinking: thought["text"] ?? "" }];
}

function toStopReason(reason: unknown): unknown {
  if (reason === "guardrail_intervened" || reason === "content_filtered") return "refusal";
  return reason ?? "end_turn";
}

function toUsage(usage: unknown): Fields {
  const given = isFields(usage) ? usage : {};
  return {
    input_tokens: given["inputTokens"] ?? 0,
    output_tokens: given["outputTokens"] ?? 0,
    cache_read_input_tokens: given["cacheReadInputTokens"] ?? 0,
    cache_creation_input_tokens: given["cacheWriteInputTokens"] ?? 0,
  };
}

/** Events of `ConverseStream` as events of a streamed message. */
export class ConverseEvents {
  /** Blocks that have begun: those of text have no event for it. */
  readonly #open = new Set<number>();
  /** The reason comes before the usage; clients expect both together. */
  #stopReason: unknown = null;

  /** Server-sent events for one message of the binary stream. */
  read(message: AwsMessage): string {
    const event = readAwsPayload(message);
    const index = typeof event["contentBlockIndex"] === "number" ? event["contentBlockIndex"] : 0;
    switch (message.headers.get(":event-type")) {
      case "messageStart":
        return toEvent("message_start", {
          message: {
            type: "message",
            role: "assistant",
            content: [],
            usage: { input_tokens: 0, output_tokens: 0 },
          },
        });
      case "contentBlockStart":
        return this.#start(index, event["start"]);
      case "contentBlockDelta":
        return this.#delta(index, event["delta"]);
      case "contentBlockStop":
        return this.#open.delete(index) ? toEvent("content_block_stop", { index }) : "";
      case "messageStop":
        this.#stopReason = toStopReason(event["stopReason"]);
        return "";
      case "metadata":
        return this.#finish(toUsage(event["usage"]));
      default:
        return "";
    }
  }

  /** The end of a stream that has no usage. A stream without an end has none. */
  end(): string {
    return this.#stopReason === null ? "" : this.#finish({});
  }

  #finish(usage: Fields): string {
    if (this.#stopReason === null) return "";
    const delta = { stop_reason: this.#stopReason, stop_sequence: null };
    this.#stopReason = null;
    return toEvent("message_delta", { delta, usage }) + toEvent("message_stop", {});
  }

  #start(index: number, start: unknown): string {
    const toolUse = isFields(start) && isFields(start["toolUse"]) ? start["toolUse"] : null;
    if (toolUse === null) return "";
    return this.#begin(index, {
      type: "tool_use",
      id: toolUse["toolUseId"],
      name: toolUse["name"],
      input: {},
    });
  }

  #begin(index: number, block: Fields): string {
    if (this.#open.has(index)) return "";
    this.#open.add(index);
    return toEvent("content_block_start", { index, content_block: block });
  }

  #delta(index: number, given: unknown): string {
    const { text, toolUse, reasoningContent: reasoning } = isFields(given) ? given : ({} as Fields);
    if (typeof text === "string") {
      const begin = this.#begin(index, { type: "text", text: "" });
      return begin + toEvent("content_block_delta", { index, delta: { type: "text_delta", text } });
    }
    if (isFields(toolUse)) {
      const delta = { type: "input_json_delta", partial_json: toolUse["input"] ?? "" };
      return toEvent("content_block_delta", { index, delta });
    }
    if (!isFields(reasoning) || typeof reasoning["text"] !== "string") return "";
    const begin = this.#begin(index, { type: "thinking", thinking: "" });
    const delta = { type: "thinking_delta", thinking: reasoning["text"] };
    return begin + toEvent("content_block_delta", { index, delta });
  }
}

function toEvent(type: string, more: Fields): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
}
