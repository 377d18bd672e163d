/** A responses request into the neutral form. */
import { InvalidRequestError } from "../errors.ts";
import {
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
import {
  decodeAllowedTools,
  decodeNamedSchema,
  decodeOpenAiField,
  decodeOpenAiFormat,
} from "../openai-fields.ts";
import { effortOf } from "../reasoning-effort.ts";
import { decodeInput } from "./decode-input.ts";
import { isResponsesSearch, SEARCH_SOURCES } from "../web-search.ts";
import { decodeSearchTool, decodeTools } from "./decode-tools.ts";

/** Fields whose absence changes nothing but speed, cost, context housekeeping or book-keeping. */
const HINTS = new Set([
  "context_management",
  "client_metadata",
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
  const maxUses = optionalNumber(body["max_tool_calls"], "max_tool_calls");
  // The search is the only tool of the provider that a target may have.
  if (request.webSearch !== null) request.webSearch = { ...request.webSearch, maxUses };
  else if (maxUses !== null) losses.note("max_tool_calls");
  return request;
}

function decodeField(request: NeutralRequest, field: string, value: unknown, losses: Losses): void {
  switch (field) {
    case "input":
    case "instructions":
    case "max_tool_calls":
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
    case "tools":
      request.tools = [...decodeTools(requireList(value, field), field, losses), ...request.tools];
      request.webSearch = decodeSearchTool(requireList(value, field), field);
      return;
    case "tool_choice":
      request.toolChoice = decodeToolChoice(value, losses);
      return;
    case "reasoning":
      decodeReasoning(request, requireRecord(value, field), losses);
      return;
    case "text":
      decodeText(request, requireRecord(value, field));
      return;
    case "include":
      for (const item of requireList(value, field)) {
        if (item !== "reasoning.encrypted_content" && item !== SEARCH_SOURCES) {
          losses.note(`include.${String(item)}`);
        }
      }
      return;
    case "background":
      if (value === true) losses.refuse(field);
      return;
    case "truncation":
      if (value !== "disabled") losses.note(field);
      return;
    default:
      if (decodeOpenAiField(request, field, value, losses)) return;
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
  const path = "text.format";
  return decodeOpenAiFormat(format, path, () =>
    decodeNamedSchema(format, path, requireRecord(format["schema"], `${path}.schema`)),
  );
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
  if (isResponsesSearch(choice)) return { mode: "web_search" };
  if (choice["type"] === "allowed_tools") return decodeAllowedTools(choice, "tool_choice");
  losses.refuse("tool_choice", "a hosted tool cannot be forced on the target");
  return null;
}
