/** A messages request into the neutral form. */
import { cacheMarkOf } from "../cache-marks.ts";
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
  textOrNull,
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
import { effortOf } from "../reasoning-effort.ts";
import { decodeMessagesSearch } from "../web-search.ts";
import { decodeBlocks, decodeSystem } from "./decode-blocks.ts";

/** Fields whose absence changes nothing but speed, cost, context housekeeping or book-keeping. */
const HINTS = new Set([
  "context_management",
  "compaction",
  "betas",
  "diagnostics",
  "speed",
  "fallbacks",
  "fallback_credit_token",
  "user_profile_id",
  "workspace_id",
]);

/** Properties of a tool that only tell the provider how to load or stream it. */
const TOOL_HINTS = ["allowed_callers", "defer_loading", "eager_input_streaming", "input_examples"];

export function decodeMessagesRequest(body: Json, losses: Losses): NeutralRequest {
  const request = emptyRequest();
  const messages = requireList(body["messages"], "messages");
  request.turns = messages.map((value, i) => {
    const path = `messages[${i}]`;
    const message = requireRecord(value, path);
    const role = message["role"];
    if (role !== "user" && role !== "assistant" && role !== "system") {
      throw new InvalidRequestError(`${path}.role`, `${path}.role is not a known role`);
    }
    return { role, parts: decodeBlocks(message["content"], `${path}.content`, losses), path };
  });
  for (const [field, value] of Object.entries(body)) {
    if (value != null) decodeField(request, field, value, losses);
  }
  return request;
}

function decodeField(request: NeutralRequest, field: string, value: unknown, losses: Losses): void {
  switch (field) {
    case "model":
    case "messages":
      return;
    case "system":
      request.system = decodeSystem(value);
      return;
    case "max_tokens":
      request.maxTokens = optionalNumber(value, field);
      return;
    case "temperature":
      request.temperature = optionalNumber(value, field);
      return;
    case "top_p":
      request.topP = optionalNumber(value, field);
      return;
    case "top_k":
      request.topK = optionalNumber(value, field);
      return;
    case "stop_sequences":
      request.stop = requireList(value, field).map((text, i) => requireText(text, `${field}[${i}]`));
      return;
    case "stream":
      request.stream = optionalFlag(value, field) === true;
      return;
    case "tools":
      request.tools = requireList(value, field).flatMap((tool, i) =>
        decodeTool(request, requireRecord(tool, `tools[${i}]`), `tools[${i}]`, losses),
      );
      return;
    case "tool_choice":
      decodeToolChoice(request, requireRecord(value, field));
      return;
    case "thinking":
      decodeThinking(request, requireRecord(value, field));
      return;
    case "output_config":
      decodeOutputConfig(request, requireRecord(value, field), losses);
      return;
    case "output_format":
      request.format = decodeFormat(requireRecord(value, field), field);
      return;
    case "metadata": {
      const { user_id, ...rest } = requireRecord(value, field);
      request.user = optionalText(user_id, "metadata.user_id");
      if (Object.keys(rest).length > 0) losses.note(field);
      return;
    }
    case "cache_control":
      request.cache = cacheMarkOf({ cache_control: value });
      return;
    case "service_tier":
      request.serviceTier = optionalText(value, field);
      return;
    case "mcp_servers":
      if (requireList(value, field).length > 0) losses.refuse(field);
      return;
    default:
      if (HINTS.has(field)) losses.note(field);
      else losses.refuse(field);
  }
}

function decodeTool(request: NeutralRequest, tool: Json, path: string, losses: Losses): readonly Tool[] {
  if (tool["type"] != null && tool["type"] !== "custom") {
    const search = decodeMessagesSearch(tool, path);
    if (search !== null) {
      request.webSearch = search;
      return [];
    }
    // The provider runs such a tool itself (code execution, memory …).
    losses.note(`tools.${textOf(tool["type"])}`);
    return [];
  }
  for (const hint of TOOL_HINTS) if (tool[hint] != null) losses.note(`tools.${hint}`);
  return [
    {
      kind: "function",
      name: requireName(tool["name"], `${path}.name`),
      description: optionalText(tool["description"], `${path}.description`),
      schema: requireRecord(tool["input_schema"], `${path}.input_schema`),
      strict: optionalFlag(tool["strict"], `${path}.strict`),
      namespace: null,
      cache: cacheMarkOf(tool),
    },
  ];
}

function decodeToolChoice(request: NeutralRequest, choice: Json): void {
  request.toolChoice = toolChoiceOf(choice);
  const isSerial = optionalFlag(choice["disable_parallel_tool_use"], "tool_choice.disable_parallel_tool_use");
  if (isSerial !== null) request.parallelTools = !isSerial;
}

function toolChoiceOf(choice: Json): ToolChoice {
  switch (choice["type"]) {
    case "auto":
    case "none":
      return { mode: choice["type"] };
    case "any":
      return { mode: "required" };
    case "tool":
      return {
        mode: "tool",
        name: requireName(choice["name"], "tool_choice.name"),
        isCustom: false,
        namespace: null,
      };
    default:
      throw new InvalidRequestError("tool_choice.type", "tool_choice.type must be auto, any, tool or none");
  }
}

function decodeThinking(request: NeutralRequest, thinking: Json): void {
  const previous = request.reasoning?.effort ?? null;
  const display = textOrNull(thinking["display"]);
  const isVisible = display !== "omitted";
  switch (thinking["type"]) {
    case "enabled":
      request.reasoning = {
        effort: previous,
        budgetTokens: optionalNumber(thinking["budget_tokens"], "thinking.budget_tokens"),
        isVisible,
      };
      return;
    case "disabled":
      // Not a request for `none`: without thinking is what this dialect does when nothing is said.
      return;
    case "adaptive":
    case "between_tools":
      request.reasoning = { effort: previous, budgetTokens: null, isVisible };
      return;
    default:
      throw new InvalidRequestError("thinking.type", "thinking.type is not known");
  }
}

function decodeOutputConfig(request: NeutralRequest, config: Json, losses: Losses): void {
  for (const [key, value] of Object.entries(config)) {
    if (value == null) continue;
    if (key === "effort") {
      const effort = effortOf(value);
      if (effort === null)
        throw new InvalidRequestError("output_config.effort", "output_config.effort is not known");
      request.reasoning = {
        effort,
        budgetTokens: request.reasoning?.budgetTokens ?? null,
        isVisible: request.reasoning?.isVisible ?? null,
      };
    } else if (key === "format") {
      request.format = decodeFormat(requireRecord(value, "output_config.format"), "output_config.format");
    } else losses.refuse(`output_config.${key}`);
  }
}

function decodeFormat(format: Json, path: string): OutputFormat {
  if (format["type"] !== "json_schema") {
    throw new InvalidRequestError(`${path}.type`, `${path}.type must be json_schema`);
  }
  const schema = optionalRecord(format["schema"], `${path}.schema`);
  if (!isRecord(schema)) throw new InvalidRequestError(`${path}.schema`, `${path}.schema must be an object`);
  return { type: "schema", name: null, description: null, schema, strict: true };
}
