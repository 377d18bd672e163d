/** What requests of chat completions and of responses have in common. */
import { InvalidRequestError } from "./errors.ts";
import {
  isRecord,
  optionalFlag,
  optionalNumber,
  optionalRecord,
  optionalText,
  requireList,
  requireName,
  requireRecord,
  textOf,
  type Json,
} from "./json.ts";
import type { Losses } from "./losses.ts";
import type { NeutralRequest, OutputFormat, ToolChoice } from "./neutral/request.ts";

/** False for a field that only one of them has, or none. */
export function decodeOpenAiField(
  request: NeutralRequest,
  field: string,
  value: unknown,
  losses: Losses,
): boolean {
  switch (field) {
    case "model":
      return true;
    case "temperature":
      request.temperature = optionalNumber(value, field);
      return true;
    case "top_p":
      request.topP = optionalNumber(value, field);
      return true;
    case "stream":
      request.stream = optionalFlag(value, field) === true;
      return true;
    case "parallel_tool_calls":
      request.parallelTools = optionalFlag(value, field);
      return true;
    case "user":
      request.user ??= optionalText(value, field);
      return true;
    case "safety_identifier":
      request.user = optionalText(value, field);
      return true;
    case "prompt_cache_key":
      request.cacheKey = optionalText(value, field);
      return true;
    case "metadata":
      request.metadata = optionalRecord(value, field);
      return true;
    case "service_tier":
      request.serviceTier = optionalText(value, field);
      return true;
    case "store":
      // Responses are never stored here; the response says so (`store: false`).
      if (value === true) losses.note(field);
      return true;
    case "top_logprobs":
      if (value !== 0) losses.refuse(field);
      return true;
    default:
      return false;
  }
}

/** `decodeSchema` reads a format of the type `json_schema`, whose members the two have in different places. */
export function decodeOpenAiFormat(
  format: Json,
  path: string,
  decodeSchema: () => OutputFormat,
): OutputFormat | null {
  switch (format["type"]) {
    case "text":
      return null;
    case "json_object":
      return { type: "json" };
    case "json_schema":
      return decodeSchema();
    default:
      throw new InvalidRequestError(`${path}.type`, `${path}.type must be text, json_object or json_schema`);
  }
}

export function decodeNamedSchema(named: Json, path: string, schema: Json): OutputFormat {
  return {
    type: "schema",
    name: requireName(named["name"], `${path}.name`),
    description: optionalText(named["description"], `${path}.description`),
    schema,
    strict: optionalFlag(named["strict"], `${path}.strict`),
  };
}

/** A list of tools that may be called: chat nests the name of a function, responses does not. */
export function decodeAllowedTools(allowed: Json, path: string): ToolChoice {
  const { mode } = allowed;
  if (mode !== "auto" && mode !== "required") {
    throw new InvalidRequestError(`${path}.mode`, `${path}.mode must be auto or required`);
  }
  const only = requireList(allowed["tools"], `${path}.tools`).map((value, i) => {
    const tool = requireRecord(value, `${path}.tools[${i}]`);
    const { function: ofChat, custom } = tool;
    const named = isRecord(ofChat) ? ofChat : isRecord(custom) ? custom : tool;
    // A tool of the provider has no name, and is not among those that are left.
    return textOf(named["name"]);
  });
  return { mode, only };
}
