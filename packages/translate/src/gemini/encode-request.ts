/** The neutral form into a Gemini generateContent request. The model and the stream are in the URL, not in the body. */
import type { NeutralRequest, Tool, ToolChoice } from "../neutral/request.ts";
import { budgetOf, chooseEffort } from "../reasoning-effort.ts";
import type { EncodeEnvironment } from "../request-codec.ts";
import { encodeSampling } from "../sampling.ts";
import { sourceField } from "../source-fields.ts";
import { CUSTOM_INPUT_SCHEMA, customToolDescription } from "../tool-format.ts";
import { encodeGeminiSearch } from "../web-search.ts";
import { encodeContents } from "./encode-contents.ts";

export function encodeGeminiRequest(
  request: NeutralRequest,
  environment: EncodeEnvironment,
): Record<string, unknown> {
  const { from, losses } = environment;
  const body: Record<string, unknown> = { contents: encodeContents(request.turns, environment) };
  const system = request.system.filter((part) => part.text !== "");
  if (system.length > 0) body["systemInstruction"] = { parts: system.map((part) => ({ text: part.text })) };
  if (request.cache !== null || system.some((part) => part.cache !== undefined)) {
    losses.note(sourceField(from, "cache"));
  }
  if (request.tools.length > 0) {
    body["tools"] = [{ functionDeclarations: request.tools.map((tool) => encodeTool(tool, environment)) }];
    if (request.toolChoice !== null) {
      body["toolConfig"] = { functionCallingConfig: encodeToolChoice(request.toolChoice, environment) };
    }
    if (request.parallelTools === false) losses.note(sourceField(from, "parallelTools"));
  }
  if (request.webSearch !== null) {
    // The model decides: the search cannot be forced.
    if (request.toolChoice !== null && request.toolChoice.mode !== "auto")
      losses.note(sourceField(from, "toolChoice"));
    body["tools"] = [encodeGeminiSearch(request.webSearch, losses)];
  }
  const config = encodeConfig(request, environment);
  if (Object.keys(config).length > 0) body["generationConfig"] = config;
  loseOthers(request, environment);
  return body;
}

function encodeConfig(request: NeutralRequest, environment: EncodeEnvironment): Record<string, unknown> {
  const { from, traits, losses } = environment;
  const config: Record<string, unknown> = {};
  if (request.maxTokens !== null) config["maxOutputTokens"] = request.maxTokens;
  Object.assign(config, encodeSampling(request, environment, "temperature", "topP"));
  if (request.topK !== null) config["topK"] = request.topK;
  if (request.seed !== null) config["seed"] = request.seed;
  if (request.frequencyPenalty !== null) config["frequencyPenalty"] = request.frequencyPenalty;
  if (request.presencePenalty !== null) config["presencePenalty"] = request.presencePenalty;
  if (request.stop.length > 0) config["stopSequences"] = request.stop;
  if (request.format !== null) {
    config["responseMimeType"] = "application/json";
    if (request.format.type === "schema") {
      if (traits.structuredOutput) config["responseJsonSchema"] = request.format.schema;
      else losses.refuse(sourceField(from, "format"));
    }
  }
  const thinking = encodeThinking(request, environment);
  if (thinking !== null) config["thinkingConfig"] = thinking;
  return config;
}

function encodeThinking(
  { reasoning }: NeutralRequest,
  environment: EncodeEnvironment,
): Record<string, unknown> | null {
  const { from, traits, losses } = environment;
  if (reasoning === null) return null;
  const isOff = reasoning.effort === "none" || reasoning.budgetTokens === 0;
  if (traits.reasoning === "none") {
    if (!isOff) losses.note(sourceField(from, "reasoning"));
    return null;
  }
  const visible = reasoning.isVisible === true && !isOff ? { includeThoughts: true } : {};
  if (traits.reasoning === "budget") {
    const budget = budgetOf(reasoning);
    return budget === null ? visible : { thinkingBudget: budget, ...visible };
  }
  const level = chooseEffort(reasoning, environment);
  return level === null ? visible : { thinkingLevel: level.toUpperCase(), ...visible };
}

function encodeTool(tool: Tool, { from, names, losses }: EncodeEnvironment): unknown {
  const isCustom = tool.kind === "custom";
  const description = isCustom ? customToolDescription(tool) : tool.description;
  const schema = isCustom ? CUSTOM_INPUT_SCHEMA : tool.schema;
  if (!isCustom && tool.strict === true) losses.note(sourceField(from, "strict"));
  if (!isCustom && tool.cache !== null) losses.note(sourceField(from, "cache"));
  return {
    name: names.name(tool.name, tool.namespace, isCustom),
    ...(description === null ? {} : { description }),
    ...(schema === null ? {} : { parametersJsonSchema: schema }),
  };
}

function encodeToolChoice(choice: ToolChoice, { names }: EncodeEnvironment): unknown {
  switch (choice.mode) {
    case "auto":
    case "web_search":
      return { mode: "AUTO" };
    case "none":
      return { mode: "NONE" };
    case "required":
      return { mode: "ANY" };
    case "tool":
      return {
        mode: "ANY",
        allowedFunctionNames: [names.name(choice.name, choice.namespace, choice.isCustom)],
      };
  }
}

function loseOthers(request: NeutralRequest, { from, losses }: EncodeEnvironment): void {
  if (request.user !== null) losses.note(sourceField(from, "user"));
  if (request.verbosity !== null && request.verbosity !== "medium")
    losses.note(sourceField(from, "verbosity"));
  if (request.cacheKey !== null) losses.note(sourceField(from, "cacheKey"));
  if (request.metadata !== null) losses.note(sourceField(from, "metadata"));
  if (request.serviceTier !== null && request.serviceTier !== "auto")
    losses.note(sourceField(from, "serviceTier"));
}
