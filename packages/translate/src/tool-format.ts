/** Custom tools (free text) as functions with one string `input`, for targets that know functions only. */
import { isRecord, textOrNull, tryParse, type Json } from "./json.ts";
import type { CustomTool } from "./neutral/request.ts";

export const CUSTOM_INPUT_SCHEMA: Json = {
  type: "object",
  properties: { input: { type: "string", description: "The whole input of the tool, as plain text." } },
  required: ["input"],
  additionalProperties: false,
};

/** The description with the grammar in it: the model has no other way to learn what the tool accepts. */
export function customToolDescription(tool: CustomTool): string | null {
  const { description, format } = tool;
  const definition = textOrNull(format?.["definition"]);
  if (definition === null) return description;
  const syntax = textOrNull(format?.["syntax"]) ?? "grammar";
  const rule = `The input must match this ${syntax} grammar:\n${definition}`;
  return description === null ? rule : `${description}\n\n${rule}`;
}

export function wrapCustomInput(input: string): string {
  return JSON.stringify({ input });
}

/** The free text in the arguments of such a function; the arguments themselves if the model did not keep to the schema. */
export function unwrapCustomInput(argumentsText: string): string {
  const value = tryParse(argumentsText);
  return (isRecord(value) ? textOrNull(value["input"]) : null) ?? argumentsText;
}

/** Tool arguments as the object that messages and Gemini require. Empty text stands for no arguments. */
export function parseArguments(text: string): Json {
  if (text === "") return {};
  const value = tryParse(text);
  if (isRecord(value)) return value;
  // A model can write broken JSON. It is passed on under a name of its own instead of being lost or failing the call.
  return { arguments: value === undefined ? text : value };
}
