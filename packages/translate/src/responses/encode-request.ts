/** The neutral form into a responses request. */
import type { NeutralRequest, Tool } from "../neutral/request.ts";
import { chooseEffort } from "../reasoning-effort.ts";
import type { EncodeEnvironment } from "../request-codec.ts";
import { encodeSampling } from "../sampling.ts";
import { sourceField } from "../source-fields.ts";
import { encodeUser } from "../user-id.ts";
import { encodeResponsesSearch, SEARCH_SOURCES } from "../web-search.ts";
import { encodeInput, encodeSystem } from "./encode-input.ts";

/** The provider rejects a lower limit. */
const MIN_OUTPUT_TOKENS = 16;

export function encodeResponsesRequest(
  request: NeutralRequest,
  environment: EncodeEnvironment,
): Record<string, unknown> {
  const { from, model, losses } = environment;
  const { instructions, items } = encodeSystem(request.system, environment);
  const body: Record<string, unknown> = {
    model,
    ...(instructions === null ? {} : { instructions }),
    input: [...items, ...encodeInput(request.turns, environment)],
    // The caller keeps the conversation and sends it whole, as its own dialect does.
    store: false,
  };
  if (request.maxTokens !== null) {
    if (request.maxTokens < MIN_OUTPUT_TOKENS) losses.note(sourceField(from, "maxTokens"));
    body["max_output_tokens"] = Math.max(request.maxTokens, MIN_OUTPUT_TOKENS);
  }
  Object.assign(body, encodeSampling(request, environment, "temperature", "top_p"));
  const { webSearch } = request;
  if (request.tools.length > 0 || webSearch !== null) {
    body["tools"] = [
      ...request.tools.map((tool) => encodeTool(tool, environment)),
      ...(webSearch === null ? [] : [encodeResponsesSearch(webSearch, losses)]),
    ];
    if (request.toolChoice !== null) body["tool_choice"] = encodeToolChoice(request, environment);
    if (request.parallelTools !== null) body["parallel_tool_calls"] = request.parallelTools;
  }
  const text = encodeText(request, environment);
  if (text !== null) body["text"] = text;
  encodeReasoning(body, request, environment);
  if (webSearch !== null) {
    body["include"] = [...((body["include"] as string[] | undefined) ?? []), SEARCH_SOURCES];
    if (webSearch.maxUses !== null) body["max_tool_calls"] = webSearch.maxUses;
  }
  encodeUser(body, request, environment);
  if (request.cacheKey !== null) body["prompt_cache_key"] = request.cacheKey;
  if (request.cache !== null) losses.note(sourceField(from, "cache"));
  if (request.metadata !== null) body["metadata"] = request.metadata;
  if (request.serviceTier !== null) {
    if (from === "chat") body["service_tier"] = request.serviceTier;
    else if (request.serviceTier !== "auto") losses.note(sourceField(from, "serviceTier"));
  }
  loseOthers(request, environment);
  if (request.stream) body["stream"] = true;
  return body;
}

function encodeTool(tool: Tool, { from, names, losses }: EncodeEnvironment): unknown {
  if (tool.kind === "custom") {
    return {
      type: "custom",
      name: names.name(tool.name, tool.namespace, false),
      ...(tool.description === null ? {} : { description: tool.description }),
      ...(tool.format === null ? {} : { format: tool.format }),
    };
  }
  if (tool.cache !== null) losses.note(sourceField(from, "cache"));
  return {
    type: "function",
    name: names.name(tool.name, tool.namespace, false),
    ...(tool.description === null ? {} : { description: tool.description }),
    parameters: tool.schema ?? { type: "object", properties: {} },
    // Without the field the provider makes the schema strict.
    strict: tool.strict === true,
  };
}

function encodeToolChoice({ toolChoice }: NeutralRequest, { names }: EncodeEnvironment): unknown {
  if (toolChoice?.mode === "web_search") return { type: "web_search" };
  if (toolChoice?.mode !== "tool") return toolChoice?.mode;
  return {
    type: toolChoice.isCustom ? "custom" : "function",
    name: names.name(toolChoice.name, toolChoice.namespace, false),
  };
}

function encodeText(
  { format, verbosity }: NeutralRequest,
  { from, traits, losses }: EncodeEnvironment,
): Record<string, unknown> | null {
  const text: Record<string, unknown> = verbosity === null ? {} : { verbosity };
  if (format?.type === "json") text["format"] = { type: "json_object" };
  else if (format !== null && !traits.structuredOutput) losses.refuse(sourceField(from, "format"));
  else if (format !== null) {
    text["format"] = {
      type: "json_schema",
      name: format.name ?? "response",
      ...(format.description === null ? {} : { description: format.description }),
      schema: format.schema,
      ...(format.strict === null ? {} : { strict: format.strict }),
    };
  }
  return Object.keys(text).length === 0 ? null : text;
}

/** Reasoning comes back encrypted, so that the next request can return it without storage at the provider. */
function encodeReasoning(
  body: Record<string, unknown>,
  { reasoning }: NeutralRequest,
  environment: EncodeEnvironment,
): void {
  const { from, traits, losses } = environment;
  if (traits.reasoning === "none") {
    if (reasoning !== null && reasoning.effort !== "none") losses.note(sourceField(from, "reasoning"));
    return;
  }
  body["include"] = ["reasoning.encrypted_content"];
  if (reasoning === null) return;
  const effort = chooseEffort(reasoning, environment);
  const settings = {
    ...(effort === null ? {} : { effort }),
    ...(reasoning.isVisible === true && effort !== "none" ? { summary: "auto" } : {}),
  };
  if (Object.keys(settings).length > 0) body["reasoning"] = settings;
}

function loseOthers(request: NeutralRequest, { from, losses }: EncodeEnvironment): void {
  if (request.stop.length > 0) losses.refuse(sourceField(from, "stop"));
  if (request.topK !== null) losses.note(sourceField(from, "topK"));
  if (request.seed !== null) losses.note(sourceField(from, "seed"));
  if (request.frequencyPenalty !== null && request.frequencyPenalty !== 0) {
    losses.refuse(sourceField(from, "frequencyPenalty"));
  }
  if (request.presencePenalty !== null && request.presencePenalty !== 0) {
    losses.refuse(sourceField(from, "presencePenalty"));
  }
}
