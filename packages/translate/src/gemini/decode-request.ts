/** A Gemini generateContent request into the neutral form. */
import { InvalidRequestError } from "../errors.ts";
import {
  isRecord,
  listOf,
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
import { emptyRequest, type NeutralRequest, type Tool } from "../neutral/request.ts";
import { effortOf } from "../reasoning-effort.ts";
import { decodeGeminiSearch } from "../web-search.ts";
import { decodeContents, decodeTexts } from "./decode-contents.ts";
import { toJsonSchema } from "./schema.ts";
import { pick, toCamelCase } from "./spelling.ts";

export function decodeGeminiRequest(body: Json, losses: Losses): NeutralRequest {
  const request = emptyRequest();
  request.turns = decodeContents(requireList(body["contents"], "contents"), losses);
  for (const [key, value] of Object.entries(body)) {
    if (value == null) continue;
    switch (toCamelCase(key)) {
      case "contents":
      case "model":
        break;
      case "systemInstruction":
        request.system = decodeTexts(value, key);
        break;
      case "generationConfig":
        decodeConfig(request, requireRecord(value, key), losses);
        break;
      case "tools":
        request.tools = requireList(value, key).flatMap((tool, i) =>
          decodeTool(request, requireRecord(tool, `tools[${i}]`), `tools[${i}]`, losses),
        );
        break;
      case "toolConfig":
        decodeToolConfig(request, requireRecord(value, key));
        break;
      case "labels":
        request.metadata = optionalRecord(value, key);
        break;
      default:
        losses.refuse(key);
    }
  }
  return request;
}

function decodeConfig(request: NeutralRequest, config: Json, losses: Losses): void {
  for (const [key, value] of Object.entries(config)) {
    if (value == null) continue;
    const path = `generationConfig.${key}`;
    switch (toCamelCase(key)) {
      case "maxOutputTokens":
        request.maxTokens = optionalNumber(value, path);
        break;
      case "temperature":
        request.temperature = optionalNumber(value, path);
        break;
      case "topP":
        request.topP = optionalNumber(value, path);
        break;
      case "topK":
        request.topK = optionalNumber(value, path);
        break;
      case "frequencyPenalty":
        request.frequencyPenalty = optionalNumber(value, path);
        break;
      case "presencePenalty":
        request.presencePenalty = optionalNumber(value, path);
        break;
      case "seed":
        request.seed = optionalNumber(value, path);
        break;
      case "stopSequences":
        request.stop = requireList(value, path).map((text, i) => requireText(text, `${path}[${i}]`));
        break;
      case "responseMimeType":
        decodeMimeType(request, value, path, losses);
        break;
      case "responseSchema":
        request.format = schemaFormat(toJsonSchema(requireRecord(value, path), path));
        break;
      case "responseJsonSchema":
        request.format = schemaFormat(requireRecord(value, path));
        break;
      case "thinkingConfig":
        decodeThinking(request, requireRecord(value, path));
        break;
      case "candidateCount":
        if (value !== 1) losses.refuse(path, "the target gives one answer a call");
        break;
      case "responseModalities":
        if (requireList(value, path).some((modality) => modality !== "TEXT")) losses.refuse(path);
        break;
      case "mediaResolution":
        losses.note(path);
        break;
      default:
        if (value !== false) losses.refuse(path);
    }
  }
}

function decodeMimeType(request: NeutralRequest, value: unknown, path: string, losses: Losses): void {
  const type = requireText(value, path);
  if (type === "application/json") request.format ??= { type: "json" };
  else if (type !== "text/plain") losses.refuse(path);
}

function schemaFormat(schema: Json): NeutralRequest["format"] {
  return { type: "schema", name: null, description: null, schema, strict: null };
}

function decodeThinking(request: NeutralRequest, config: Json): void {
  const path = "generationConfig.thinkingConfig";
  const level = textOrNull(pick(config, "thinkingLevel"))?.toLowerCase();
  const effort = effortOf(level);
  if (level !== undefined && effort === null) {
    throw new InvalidRequestError(`${path}.thinkingLevel`, `${path}.thinkingLevel is not known`);
  }
  request.reasoning = {
    effort,
    budgetTokens: optionalNumber(pick(config, "thinkingBudget"), `${path}.thinkingBudget`),
    isVisible: optionalFlag(pick(config, "includeThoughts"), `${path}.includeThoughts`),
  };
}

function decodeTool(request: NeutralRequest, tool: Json, path: string, losses: Losses): Tool[] {
  for (const [key, value] of Object.entries(tool)) {
    if (toCamelCase(key) === "functionDeclarations" || value == null) continue;
    const search = decodeGeminiSearch(key, value, `${path}.${key}`);
    if (search === null) losses.note(`${path}.${key}`);
    else request.webSearch = search;
  }
  return listOf(pick(tool, "functionDeclarations")).map((value, i) => {
    const at = `${path}.functionDeclarations[${i}]`;
    const declaration = requireRecord(value, at);
    const plain = pick(declaration, "parametersJsonSchema");
    const own = declaration["parameters"];
    let schema: Json | null = null;
    if (isRecord(plain)) schema = plain;
    else if (isRecord(own)) schema = toJsonSchema(own, `${at}.parameters`);
    return {
      kind: "function",
      name: requireName(declaration["name"], `${at}.name`),
      description: optionalText(declaration["description"], `${at}.description`),
      schema,
      strict: null,
      namespace: null,
      cache: null,
    };
  });
}

function decodeToolConfig(request: NeutralRequest, config: Json): void {
  const path = "toolConfig.functionCallingConfig";
  const calling = optionalRecord(pick(config, "functionCallingConfig"), path);
  if (calling === null) return;
  const names = listOf(pick(calling, "allowedFunctionNames"));
  switch (calling["mode"] ?? "AUTO") {
    case "AUTO":
    case "VALIDATED":
      request.toolChoice = { mode: "auto" };
      return;
    case "NONE":
      request.toolChoice = { mode: "none" };
      return;
    case "ANY": {
      const [name] = names;
      request.toolChoice =
        names.length === 1
          ? {
              mode: "tool",
              name: requireName(name, `${path}.allowedFunctionNames[0]`),
              isCustom: false,
              namespace: null,
            }
          : names.length === 0
            ? { mode: "required" }
            : { mode: "required", only: names.map(textOf) };
      return;
    }
    default:
      throw new InvalidRequestError(`${path}.mode`, `${path}.mode must be AUTO, ANY, NONE or VALIDATED`);
  }
}
