/** What kind of call a path is: for the log, for the field names of its usage, and for what its body must hold. */
import type { UsageDialect } from "../../engines/relay/index.ts";

export type RequestType =
  | "chat"
  | "completions"
  | "responses"
  | "messages"
  | "embeddings"
  | "generate_content"
  | "images"
  | "audio"
  | "moderations"
  | "models"
  | "";

const BY_ENDING: readonly (readonly [RegExp, RequestType])[] = [
  [/(^|\/)chat\/completions$/, "chat"],
  [/(^|\/)completions$/, "completions"],
  [/(^|\/)responses$/, "responses"],
  [/(^|\/)messages$/, "messages"],
  [/(^|\/)embeddings$/, "embeddings"],
  [/:(stream)?generateContent$/i, "generate_content"],
  [/:(batch)?embedContents?$/i, "embeddings"],
  [/(^|\/)images\//, "images"],
  [/(^|\/)audio\//, "audio"],
  [/(^|\/)moderations$/, "moderations"],
  [/(^|\/)models(\/[^/:]+)?$/, "models"],
];

/** Few distinct paths are in use, so the answer is kept; paths with ids in them would fill the map, hence the cap. */
const known = new Map<string, RequestType>();
const MAX_KNOWN = 1000;

export function requestTypeOf(path: string): RequestType {
  let type = known.get(path);
  if (type === undefined) {
    type = BY_ENDING.find(([pattern]) => pattern.test(path))?.[1] ?? "";
    if (known.size < MAX_KNOWN) known.set(path, type);
  }
  return type;
}

/** Calls whose JSON body we understand enough to refuse a malformed one. */
export function isUnderstood(type: RequestType): boolean {
  return (
    type === "chat" ||
    type === "completions" ||
    type === "responses" ||
    type === "messages" ||
    type === "embeddings"
  );
}

/** The endpoint's shape decides before the provider's: many providers serve several shapes. */
export function usageDialectOf(type: RequestType, ofProvider: UsageDialect): UsageDialect {
  if (type === "chat" || type === "responses" || type === "completions") return "openai";
  if (type === "messages") return "anthropic";
  if (type === "generate_content") return "gemini";
  return type === "models" ? "none" : ofProvider;
}
