/** The arguments of a call as a person types them: one field for each parameter, or one JSON array. */
import type { CallableMethod } from "../agent.ts";

type Parameters = NonNullable<CallableMethod["parameters"]>;

/** Values are JSON; anything else is text. An empty field is an argument that is left out. Throws if one is missing before another. */
export function argumentsOf(parameters: Parameters, typed: readonly string[]): unknown[] {
  const texts = parameters.map((_, i) => typed[i]?.trim() ?? "");
  const count = texts.findLastIndex((text) => text !== "") + 1;
  return texts.slice(0, count).flatMap((text, i) => {
    const parameter = parameters[i];
    if (text === "" && parameter?.optional !== true)
      throw new Error(`The argument ${parameter?.name ?? i + 1} is missing. Type "" for an empty text.`);
    // JSON has no `undefined`; for a default, null is what a client would send, too.
    const value = text === "" ? null : parseValue(text);
    return parameter?.rest === true && Array.isArray(value) ? (value as unknown[]) : [value];
  });
}

export function parseArguments(text: string): unknown[] {
  let value: unknown;
  try {
    value = JSON.parse(text.trim() === "" ? "[]" : text);
  } catch (error) {
    throw new Error(`The arguments are not valid JSON: ${error instanceof Error ? error.message : ""}`, {
      cause: error,
    });
  }
  if (!Array.isArray(value)) throw new Error('The arguments must be a JSON array, for example ["push", 10].');
  return value;
}

/** The fields for arguments that were sent before. Text that would be read as JSON is quoted. */
export function typedOf(parameters: Parameters, args: readonly unknown[]): string[] {
  return parameters.map(({ rest }, i) => {
    const value: unknown = rest ? args.slice(i) : args[i];
    if (value === undefined) return "";
    return typeof value === "string" && value !== "" && parseValue(value) === value && value === value.trim()
      ? value
      : JSON.stringify(value);
  });
}

function parseValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A value that was meant as JSON should not become text.
    if (/^[[{"]/.test(text)) throw new Error(`This is neither JSON nor plain text: ${text.slice(0, 60)}`);
    return text;
  }
}
