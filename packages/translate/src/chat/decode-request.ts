/** A chat completions request into the neutral form. */
import { InvalidRequestError } from "../errors.ts";
import {
  isRecord,
  optionalFlag,
  optionalNumber,
  optionalRecord,
  optionalText,
  requireList,
  requireName,
  requireRecord,
  requireText,
  textOf,
  type Json,
} from "../json.ts";
import type { Losses } from "../losses.ts";
import {
  emptyRequest,
  type NeutralRequest,
  type OutputFormat,
  type Tool,
  type ToolChoice,
} from "../neutral/request.ts";
import {
  decodeAllowedTools,
  decodeNamedSchema,
  decodeOpenAiField,
  decodeOpenAiFormat,
} from "../openai-fields.ts";
import { effortOf } from "../reasoning-effort.ts";
import { cacheMarkOf } from "../cache-marks.ts";
import { decodeChatSearch } from "../web-search.ts";
import { decodeMessages } from "./decode-messages.ts";

/** Fields whose absence changes nothing but speed, cost or book-keeping. */
const HINTS = new Set(["prediction", "prompt_cache_options", "prompt_cache_retention"]);

export function decodeChatRequest(body: Json, losses: Losses): NeutralRequest {
  const request = emptyRequest();
  Object.assign(request, decodeMessages(requireList(body["messages"], "messages"), losses));
  for (const [field, value] of Object.entries(body)) {
    if (value != null) decodeField(request, field, value, body, losses);
  }
  return request;
}

function decodeField(
  request: NeutralRequest,
  field: string,
  value: unknown,
  body: Json,
  losses: Losses,
): void {
  switch (field) {
    case "messages":
      return;
    case "max_completion_tokens":
      request.maxTokens = optionalNumber(value, field);
      return;
    case "max_tokens":
      if (body["max_completion_tokens"] == null) request.maxTokens = optionalNumber(value, field);
      return;
    case "top_k":
      request.topK = optionalNumber(value, field);
      return;
    case "frequency_penalty":
      request.frequencyPenalty = optionalNumber(value, field);
      return;
    case "presence_penalty":
      request.presencePenalty = optionalNumber(value, field);
      return;
    case "seed":
      request.seed = optionalNumber(value, field);
      return;
    case "stop":
      request.stop = decodeStop(value);
      return;
    case "stream_options":
      decodeStreamOptions(request, requireRecord(value, field), losses);
      return;
    case "tools":
      request.tools = requireList(value, field).flatMap((tool, i) => decodeTool(tool, `tools[${i}]`, losses));
      return;
    case "tool_choice":
      request.toolChoice = decodeToolChoice(value, losses);
      return;
    case "web_search_options":
      request.webSearch = decodeChatSearch(requireRecord(value, field));
      return;
    case "response_format":
      request.format = decodeFormat(requireRecord(value, field));
      return;
    case "reasoning_effort": {
      const effort = effortOf(value);
      if (effort === null) throw new InvalidRequestError(field, "reasoning_effort is not a known effort");
      request.reasoning = { effort, budgetTokens: null, isVisible: null };
      return;
    }
    case "verbosity":
      request.verbosity = optionalText(value, field);
      return;
    case "n":
      if (value !== 1) losses.refuse(field, "the target gives one answer a call");
      return;
    case "logprobs":
      if (value === true) losses.refuse(field);
      return;
    case "modalities":
      if (requireList(value, field).some((modality) => modality !== "text")) losses.refuse(field);
      return;
    case "logit_bias":
      if (Object.keys(requireRecord(value, field)).length > 0) losses.refuse(field);
      return;
    default:
      if (decodeOpenAiField(request, field, value, losses)) return;
      if (HINTS.has(field)) losses.note(field);
      else losses.refuse(field);
  }
}

function decodeStreamOptions(request: NeutralRequest, options: Json, losses: Losses): void {
  for (const [key, value] of Object.entries(options)) {
    const path = `stream_options.${key}`;
    if (key === "include_usage") request.includeUsage = optionalFlag(value, path) === true;
    else if (value != null) losses.note(path);
  }
}

function decodeStop(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  return requireList(value, "stop").map((text, i) => requireText(text, `stop[${i}]`));
}

function decodeTool(value: unknown, path: string, losses: Losses): readonly Tool[] {
  const tool = requireRecord(value, path);
  if (tool["type"] === "custom") {
    const custom = requireRecord(tool["custom"], `${path}.custom`);
    const format = optionalRecord(custom["format"], `${path}.custom.format`);
    return [
      {
        kind: "custom",
        name: requireName(custom["name"], `${path}.custom.name`),
        description: optionalText(custom["description"], `${path}.custom.description`),
        format: isRecord(format?.["grammar"]) ? { type: "grammar", ...format["grammar"] } : format,
        namespace: null,
      },
    ];
  }
  if (tool["type"] !== "function") {
    losses.note(`tools.${textOf(tool["type"])}`);
    return [];
  }
  const definition = requireRecord(tool["function"], `${path}.function`);
  return [
    {
      kind: "function",
      name: requireName(definition["name"], `${path}.function.name`),
      description: optionalText(definition["description"], `${path}.function.description`),
      schema: optionalRecord(definition["parameters"], `${path}.function.parameters`),
      strict: optionalFlag(definition["strict"], `${path}.function.strict`),
      namespace: null,
      cache: cacheMarkOf(tool) ?? cacheMarkOf(definition),
    },
  ];
}

function decodeToolChoice(value: unknown, losses: Losses): ToolChoice | null {
  if (value === "auto" || value === "none" || value === "required") return { mode: value };
  const choice = requireRecord(value, "tool_choice");
  const kind = choice["type"];
  if (kind === "function" || kind === "custom") {
    const named = requireRecord(choice[kind], `tool_choice.${kind}`);
    return {
      mode: "tool",
      name: requireName(named["name"], `tool_choice.${kind}.name`),
      isCustom: kind === "custom",
      namespace: null,
    };
  }
  if (kind === "allowed_tools") {
    const allowed = requireRecord(choice["allowed_tools"], "tool_choice.allowed_tools");
    return decodeAllowedTools(allowed, "tool_choice.allowed_tools");
  }
  losses.refuse("tool_choice");
  return null;
}

function decodeFormat(format: Json): OutputFormat | null {
  return decodeOpenAiFormat(format, "response_format", () => {
    const path = "response_format.json_schema";
    const named = requireRecord(format["json_schema"], path);
    return decodeNamedSchema(named, path, optionalRecord(named["schema"], `${path}.schema`) ?? {});
  });
}
