/** The neutral form into a messages request. */
import { toCacheControl } from "../cache-marks.ts";
import type { TextPart } from "../neutral/part.ts";
import type { NeutralRequest, Tool, ToolChoice, Turn } from "../neutral/request.ts";
import { budgetOf, chooseEffort } from "../reasoning-effort.ts";
import { withOwnCacheMarks } from "../own-cache-marks.ts";
import type { EncodeEnvironment } from "../request-codec.ts";
import { encodeSampling } from "../sampling.ts";
import { sourceField } from "../source-fields.ts";
import { CUSTOM_INPUT_SCHEMA, customToolDescription } from "../tool-format.ts";
import { encodeMessagesSearch, WEB_SEARCH } from "../web-search.ts";
import { encodeSystem, encodeTurns } from "./encode-blocks.ts";

/** The smallest budget that the provider accepts. */
const MIN_BUDGET = 1024;
/** What is left for the answer at least when the client's limit does not exceed the budget of reasoning. */
const MIN_ANSWER_TOKENS = 4096;

/** The dialect has no mode for JSON without a schema; the model is told. */
const JSON_ONLY: TextPart = {
  type: "text",
  text: "Answer with a single valid JSON object and nothing else: no other text and no code fence.",
};

export function encodeMessagesRequest(
  given: NeutralRequest,
  environment: EncodeEnvironment,
): Record<string, unknown> {
  const { from, model, traits, losses } = environment;
  const request = environment.marksCache ? withOwnCacheMarks(given) : given;
  const body: Record<string, unknown> = {
    model,
    max_tokens: request.maxTokens ?? traits.maxOutputTokens,
    messages: encodeTurns(request.turns, environment),
  };
  const system = request.format?.type === "json" ? [...request.system, JSON_ONLY] : request.system;
  if (system.length > 0) body["system"] = encodeSystem(system);
  if (request.cache !== null) body["cache_control"] = toCacheControl(request.cache);
  const stop = request.stop.filter((text) => text.trim() !== "");
  if (stop.length < request.stop.length) losses.note(sourceField(from, "stop"));
  if (stop.length > 0) body["stop_sequences"] = stop;
  encodeTools(body, request, environment);
  encodeFormat(body, request, environment);
  encodeReasoning(body, request, environment);
  encodeTemperature(body, request, environment);
  if (request.user !== null) body["metadata"] = { user_id: request.user };
  loseOthers(request, environment);
  if (request.stream) body["stream"] = true;
  return body;
}

function encodeTools(
  body: Record<string, unknown>,
  request: NeutralRequest,
  environment: EncodeEnvironment,
): void {
  const { webSearch } = request;
  if (request.tools.length === 0 && webSearch === null) return;
  body["tools"] = [
    ...request.tools.map((tool) => encodeTool(tool, environment)),
    ...(webSearch === null ? [] : [encodeMessagesSearch(webSearch, environment.losses)]),
  ];
  const { toolChoice, parallelTools } = request;
  if (toolChoice === null && parallelTools !== false) return;
  const serial = parallelTools === false ? { disable_parallel_tool_use: true } : {};
  body["tool_choice"] = encodeToolChoice(toolChoice ?? { mode: "auto" }, serial, environment);
}

function encodeToolChoice(
  choice: ToolChoice,
  serial: Record<string, unknown>,
  { names }: EncodeEnvironment,
): Record<string, unknown> {
  switch (choice.mode) {
    case "auto":
      return { type: "auto", ...serial };
    case "none":
      return { type: "none" };
    case "required":
      return { type: "any", ...serial };
    case "web_search":
      return { type: "tool", name: WEB_SEARCH, ...serial };
    case "tool":
      return { type: "tool", name: names.name(choice.name, choice.namespace, choice.isCustom), ...serial };
  }
}

function encodeTool(tool: Tool, { names }: EncodeEnvironment): Record<string, unknown> {
  if (tool.kind === "custom") {
    const description = customToolDescription(tool);
    return {
      name: names.name(tool.name, tool.namespace, true),
      ...(description === null ? {} : { description }),
      input_schema: CUSTOM_INPUT_SCHEMA,
    };
  }
  const { schema } = tool;
  return {
    name: names.name(tool.name, tool.namespace, false),
    ...(tool.description === null ? {} : { description: tool.description }),
    // The provider requires an object schema; a tool without parameters has none.
    input_schema: schema === null ? { type: "object", properties: {} } : { ...objectType(schema), ...schema },
    ...(tool.strict === true ? { strict: true } : {}),
    ...(tool.cache === null ? {} : { cache_control: toCacheControl(tool.cache) }),
  };
}

function objectType(schema: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return schema["type"] === undefined ? { type: "object" } : {};
}

function encodeFormat(
  body: Record<string, unknown>,
  request: NeutralRequest,
  { from, traits, losses }: EncodeEnvironment,
): void {
  if (request.format === null) return;
  if (request.format.type === "json") {
    losses.note(sourceField(from, "format"));
    return;
  }
  if (!traits.structuredOutput) {
    losses.refuse(sourceField(from, "format"));
    return;
  }
  body["output_config"] = { format: { type: "json_schema", schema: request.format.schema } };
}

/** Reasoning never goes together with a forced tool: the provider rejects the pair. The effort alone is accepted. */
function encodeReasoning(
  body: Record<string, unknown>,
  request: NeutralRequest,
  environment: EncodeEnvironment,
): void {
  const { from, traits, losses } = environment;
  const { reasoning } = request;
  if (reasoning === null) return;
  const field = sourceField(from, "reasoning");
  const isOff = reasoning.effort === "none" || reasoning.budgetTokens === 0;
  if (traits.reasoning === "none") {
    if (!isOff) losses.note(field);
    return;
  }
  if (isOff) {
    if (traits.reasoning !== "effort") body["thinking"] = { type: "disabled" };
    return;
  }
  const mode = request.toolChoice?.mode;
  const hasTools = request.tools.length > 0 || request.webSearch !== null;
  const isForced = hasTools && (mode === "required" || mode === "tool" || mode === "web_search");
  if (traits.reasoning === "budget") {
    const wanted = budgetOf(reasoning);
    if (isForced || !canResumeThinking(request.turns)) losses.note(field);
    else encodeBudget(body, Math.max(wanted ?? MIN_BUDGET, MIN_BUDGET), traits.maxOutputTokens);
    return;
  }
  const effort = chooseEffort(reasoning, environment);
  if (effort !== null) body["output_config"] = { ...(body["output_config"] as object | undefined), effort };
  if (traits.reasoning === "effort") return;
  if (isForced) losses.note(field);
  else {
    const display =
      reasoning.isVisible === null ? {} : { display: reasoning.isVisible ? "summarized" : "omitted" };
    body["thinking"] = { type: "adaptive", ...display };
  }
}

/** `max_tokens` includes the budget and must exceed it, so a lower limit is raised, up to what the model can write. */
function encodeBudget(body: Record<string, unknown>, budget: number, maxOutputTokens: number): void {
  const limit = body["max_tokens"] as number;
  if (limit > budget) {
    body["thinking"] = { type: "enabled", budget_tokens: budget };
    return;
  }
  const answer = Math.max(limit, MIN_ANSWER_TOKENS);
  const raised = Math.max(limit, Math.min(budget + answer, maxOutputTokens), 2 * MIN_BUDGET);
  body["max_tokens"] = raised;
  const left = Math.max(raised - answer, Math.floor(raised / 2), MIN_BUDGET);
  body["thinking"] = { type: "enabled", budget_tokens: Math.min(budget, left) };
}

/**
 * With a budget, the provider requires that an assistant turn with open tool calls begins with its own signed thinking.
 * A history from another provider has none.
 */
function canResumeThinking(turns: readonly Turn[]): boolean {
  const last = turns.findLast((turn) => turn.role === "assistant");
  if (last === undefined || !last.parts.some((part) => part.type === "tool_call")) return true;
  const isOpen = turns.at(-1)?.parts.some((part) => part.type === "tool_result") === true;
  const [first] = last.parts;
  return !isOpen || (first?.type === "reasoning" && first.origin === "messages");
}

function encodeTemperature(
  body: Record<string, unknown>,
  request: NeutralRequest,
  environment: EncodeEnvironment,
): void {
  const { from, losses } = environment;
  const thinking = body["thinking"] as { type: string } | undefined;
  const isThinking = thinking !== undefined && thinking.type !== "disabled";
  if (isThinking) {
    if (request.temperature !== null && request.temperature !== 1)
      losses.note(sourceField(from, "temperature"));
    if (request.topP !== null && request.topP !== 1) losses.note(sourceField(from, "topP"));
    if (request.topK !== null) losses.note(sourceField(from, "topK"));
    return;
  }
  const clamped = request.temperature === null ? null : Math.min(request.temperature, 1);
  if (clamped !== request.temperature) losses.note(sourceField(from, "temperature"));
  Object.assign(
    body,
    encodeSampling({ temperature: clamped, topP: request.topP }, environment, "temperature", "top_p"),
  );
  if (request.topK === null) return;
  if (environment.traits.sampling === "none") losses.note(sourceField(from, "topK"));
  else body["top_k"] = request.topK;
}

function loseOthers(request: NeutralRequest, { from, losses }: EncodeEnvironment): void {
  if (request.frequencyPenalty !== null && request.frequencyPenalty !== 0) {
    losses.refuse(sourceField(from, "frequencyPenalty"));
  }
  if (request.presencePenalty !== null && request.presencePenalty !== 0) {
    losses.refuse(sourceField(from, "presencePenalty"));
  }
  if (request.seed !== null) losses.note(sourceField(from, "seed"));
  if (request.verbosity !== null && request.verbosity !== "medium")
    losses.note(sourceField(from, "verbosity"));
  if (request.cacheKey !== null) losses.note(sourceField(from, "cacheKey"));
  if (request.metadata !== null) losses.note(sourceField(from, "metadata"));
  if (request.serviceTier !== null && request.serviceTier !== "auto")
    losses.note(sourceField(from, "serviceTier"));
}
