/** A responses request into the neutral form. */
import { InvalidRequestError } from "../errors.ts";
import {
  optionalFlag,
  optionalNumber,
  optionalRecord,
  optionalText,
  requireList,
  requireName,
  requireRecord,
  type Json,
} from "../json.ts";
import type { Losses } from "../losses.ts";
import { emptyRequest, type NeutralRequest, type OutputFormat, type ToolChoice } from "../neutral/request.ts";
import { effortOf } from "../reasoning-effort.ts";
import { decodeInput } from "./decode-input.ts";
import { decodeTools } from "./decode-tools.ts";

/** Fields whose absence changes nothing but speed, cost, context housekeeping or book-keeping. */
const HINTS = new Set([
  "context_management",
  "client_metadata",
  "max_tool_calls",
  "prompt_cache_options",
  "prompt_cache_retention",
  "stream_options",
]);

export function decodeResponsesRequest(body: Json, losses: Losses): NeutralRequest {
  const request = emptyRequest();
  const { system, turns, tools } = decodeInput(body["input"], losses);
  const instructions = optionalText(body["instructions"], "instructions");
  request.system = instructions === null ? system : [{ type: "text", text: instructions }, ...system];
  request.turns = turns;
  request.tools = tools;
  for (const [field, value] of Object.entries(body)) {
    if (value != null) decodeField(request, field, value, losses);
  }
  return request;
}

function decodeField(request: NeutralRequest, field: string, value: unknown, losses: Losses): void {
  switch (field) {
    case "model":
    case "input":
    case "instructions":
      return;
    case "previous_response_id":
      throw new InvalidRequestError(
        field,
        "previous_response_id names a response that is not stored here. Send the whole conversation in input.",
        "previous_response_not_found",
      );
    case "max_output_tokens":
      request.maxTokens = optionalNumber(value, field);
      return;
    case "temperature":
      request.temperature = optionalNumber(value, field);
      return;
    case "top_p":
      request.topP = optionalNumber(value, field);
      return;
    case "stream":
      request.stream = optionalFlag(value, field) === true;
      return;
    case "tools":
      request.tools = [...decodeTools(requireList(value, field), field, losses), ...request.tools];
      return;
    case "tool_choice":
      request.toolChoice = decodeToolChoice(value, losses);
      return;
    case "parallel_tool_calls":
      request.parallelTools = optionalFlag(value, field);
      return;
    case "reasoning":
      decodeReasoning(request, requireRecord(value, field), losses);
      return;
    case "text":
      decodeText(request, requireRecord(value, field));
      return;
    case "user":
      request.user ??= optionalText(value, field);
      return;
    case "safety_identifier":
      request.user = optionalText(value, field);
      return;
    case "prompt_cache_key":
      request.cacheKey = optionalText(value, field);
      return;
    case "metadata":
      request.metadata = optionalRecord(value, field);
      return;
    case "service_tier":
      request.serviceTier = optionalText(value, field);
      return;
    case "include":
      for (const item of requireList(value, field)) {
        if (item !== "reasoning.encrypted_content") losses.note(`include.${String(item)}`);
      }
      return;
    case "store":
      // Responses are never stored here; the response says so (`store: false`).
      if (value === true) losses.note(field);
      return;
    case "background":
      if (value === true) losses.refuse(field);
      return;
    case "truncation":
      if (value !== "disabled") losses.note(field);
      return;
    case "top_logprobs":
      if (value !== 0) losses.refuse(field);
      return;
    default:
      if (HINTS.has(field)) losses.note(field);
      else losses.refuse(field);
  }
}

function decodeReasoning(request: NeutralRequest, reasoning: Json, losses: Losses): void {
  const { effort, summary, generate_summary, ...rest } = reasoning;
  const known = effortOf(effort);
  if (effort != null && known === null) {
    throw new InvalidRequestError("reasoning.effort", "reasoning.effort is not a known effort");
  }
  for (const [key, value] of Object.entries(rest)) if (value != null) losses.note(`reasoning.${key}`);
  const wanted = summary ?? generate_summary;
  const isVisible = wanted == null ? null : wanted !== "none";
  if (known !== null || isVisible !== null) {
    request.reasoning = { effort: known, budgetTokens: null, isVisible };
  }
}

function decodeText(request: NeutralRequest, text: Json): void {
  request.verbosity = optionalText(text["verbosity"], "text.verbosity");
  const format = optionalRecord(text["format"], "text.format");
  if (format !== null) request.format = decodeFormat(format);
}

function decodeFormat(format: Json): OutputFormat | null {
  switch (format["type"]) {
    case "text":
      return null;
    case "json_object":
      return { type: "json" };
    case "json_schema":
      return {
        type: "schema",
        name: requireName(format["name"], "text.format.name"),
        description: optionalText(format["description"], "text.format.description"),
        schema: requireRecord(format["schema"], "text.format.schema"),
        strict: optionalFlag(format["strict"], "text.format.strict"),
      };
    default:
      throw new InvalidRequestError(
        "text.format.type",
        "text.format.type must be text, json_object or json_schema",
      );
  }
}

function decodeToolChoice(value: unknown, losses: Losses): ToolChoice | null {
  if (value === "none" || value === "auto" || value === "required") return { mode: value };
  const choice = requireRecord(value, "tool_choice");
  if (choice["type"] === "function" || choice["type"] === "custom") {
    return {
      mode: "tool",
      name: requireName(choice["name"], "tool_choice.name"),
      isCustom: choice["type"] === "custom",
      namespace: null,
    };
  }
  losses.refuse("tool_choice", "a hosted tool or a list of allowed tools cannot be forced on the target");
  return null;
}
