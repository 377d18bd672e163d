/** The neutral form into a chat completions request. */
import { toCacheControl } from "../cache-marks.ts";
import type { NeutralRequest, OutputFormat, Tool, ToolChoice } from "../neutral/request.ts";
import { chooseEffort } from "../reasoning-effort.ts";
import type { EncodeEnvironment } from "../request-codec.ts";
import { encodeSampling } from "../sampling.ts";
import { sourceField } from "../source-fields.ts";
import { CUSTOM_INPUT_SCHEMA, customToolDescription } from "../tool-format.ts";
import { encodeUser } from "../user-id.ts";
import { encodeChatSearch } from "../web-search.ts";
import { encodeMessages } from "./encode-messages.ts";

export function encodeChatRequest(
  request: NeutralRequest,
  environment: EncodeEnvironment,
): Record<string, unknown> {
  const { from, model, traits, losses } = environment;
  const body: Record<string, unknown> = { model, messages: encodeMessages(request, environment) };
  if (request.maxTokens !== null) body[traits.maxTokensField] = request.maxTokens;
  Object.assign(body, encodeSampling(request, environment, "temperature", "top_p"));
  if (request.topK !== null) losses.note(sourceField(from, "topK"));
  if (request.frequencyPenalty !== null) body["frequency_penalty"] = request.frequencyPenalty;
  if (request.presencePenalty !== null) body["presence_penalty"] = request.presencePenalty;
  if (request.seed !== null) body["seed"] = request.seed;
  if (request.stop.length > 0) body["stop"] = request.stop;
  if (request.tools.length > 0) {
    body["tools"] = request.tools.map((tool) => encodeTool(tool, environment));
    if (request.toolChoice !== null) body["tool_choice"] = encodeToolChoice(request.toolChoice, environment);
    if (request.parallelTools !== null) body["parallel_tool_calls"] = request.parallelTools;
  }
  if (request.webSearch !== null) {
    body["web_search_options"] = encodeChatSearch(request.webSearch, losses);
    // A model with this option always searches.
    if (request.toolChoice?.mode === "none") losses.note(sourceField(from, "toolChoice"));
  }
  if (request.format !== null) {
    if (traits.structuredOutput || request.format.type === "json") {
      body["response_format"] = encodeFormat(request.format);
    } else losses.refuse(sourceField(from, "format"));
  }
  if (request.verbosity !== null) body["verbosity"] = request.verbosity;
  encodeReasoning(body, request, environment);
  encodeUser(body, request, environment);
  if (request.cacheKey !== null) body["prompt_cache_key"] = request.cacheKey;
  if (request.cache !== null) losses.note(sourceField(from, "cache"));
  if (request.metadata !== null) body["metadata"] = request.metadata;
  if (request.serviceTier !== null) {
    if (from === "responses") body["service_tier"] = request.serviceTier;
    else if (request.serviceTier !== "auto") losses.note(sourceField(from, "serviceTier"));
  }
  if (request.stream) {
    body["stream"] = true;
    if (traits.streamUsage) body["stream_options"] = { include_usage: true };
  }
  return body;
}

function encodeReasoning(
  body: Record<string, unknown>,
  { reasoning, tools }: NeutralRequest,
  environment: EncodeEnvironment,
): void {
  if (reasoning === null) return;
  const { from, traits, losses } = environment;
  const isTaken = traits.reasoning !== "none" && (tools.length === 0 || traits.takesEffortWithTools);
  const effort = isTaken ? chooseEffort(reasoning, environment) : null;
  if (effort !== null) body["reasoning_effort"] = effort;
  else if (!isTaken && reasoning.effort !== "none") losses.note(sourceField(from, "reasoning"));
}

function encodeTool(tool: Tool, { names, traits, losses, from }: EncodeEnvironment): unknown {
  if (tool.kind === "custom") {
    const description = customToolDescription(tool);
    return {
      type: "function",
      function: {
        name: names.name(tool.name, tool.namespace, true),
        ...(description === null ? {} : { description }),
        parameters: CUSTOM_INPUT_SCHEMA,
      },
    };
  }
  const cache = tool.cache !== null && traits.takesCacheControl ? tool.cache : null;
  if (tool.cache !== null && cache === null) losses.note(sourceField(from, "cache"));
  return {
    type: "function",
    function: {
      name: names.name(tool.name, tool.namespace, false),
      ...(tool.description === null ? {} : { description: tool.description }),
      ...(tool.schema === null ? {} : { parameters: tool.schema }),
      ...(tool.strict === null ? {} : { strict: tool.strict }),
    },
    ...(cache === null ? {} : { cache_control: toCacheControl(cache) }),
  };
}

function encodeToolChoice(choice: ToolChoice, { names }: EncodeEnvironment): unknown {
  if (choice.mode === "web_search") return "auto";
  if (choice.mode !== "tool") return choice.mode;
  return { type: "function", function: { name: names.name(choice.name, choice.namespace, choice.isCustom) } };
}

function encodeFormat(format: OutputFormat): unknown {
  if (format.type === "json") return { type: "json_object" };
  const { name, description, schema, strict } = format;
  return {
    type: "json_schema",
    json_schema: {
      name: name ?? "response",
      ...(description === null ? {} : { description }),
      schema,
      ...(strict === null ? {} : { strict }),
    },
  };
}
