/**
 * Every model that a request names, wherever a provider might read it: in the path, in the query, and in the body. The check of a token's rules takes
 * all of them, because this service and a provider can read one request differently: two members `model`, a member `Model` (Go ignores case), a
 * model in the path and another one in the body, a router's list of alternatives.
 *
 * A request whose model cannot be known for certain has `isCertain: false`: a compressed, streamed, multipart or malformed body, and a path whose
 * meaning is unknown.
 */
import { readEachMember, type RequestBody } from "../../engines/relay/index.ts";
import { malformed } from "../step/malformed.ts";
import type { Step } from "../step/step.ts";

export interface NamedModels {
  readonly names: readonly string[];
  readonly isCertain: boolean;
}

const NO_NAMES: string[] = [];
/** A segment after one of these names a model in the APIs of Google, Azure, AWS, Hugging Face, Replicate and OpenAI. */
const MODEL_SEGMENTS: ReadonlySet<string> = new Set([
  "models",
  "model",
  "deployments",
  "engines",
  "endpoints",
  "tunedmodels",
  "inference-profile",
]);
/** Google's OpenAI-compatible endpoint; the body names the model. */
const NOT_A_MODEL: ReadonlySet<string> = new Set(["openapi"]);
/** These methods start no model in any known API. */
export const READING: ReadonlySet<string> = new Set(["GET", "HEAD", "DELETE", "OPTIONS"]);
/** Anthropic counts the tokens of a conversation: the body is that of a message. */
export const COUNTS_TOKENS = /(?:^|\/)messages\/count_tokens$/i;
/** Members of a body that name models, in lower case: `models` and the like are lists of alternatives. */
const MEMBERS: ReadonlySet<string> = new Set(["model", "models", "fallbacks", "fallback_models", "tools"]);

/** More than any API takes as alternatives. Each is looked up among rules and prices: with any number, a caller would decide how long that takes. */
const MAX_NAMES = 50;

export function readNamedModels(step: Step): NamedModels {
  const { names, isCertain } = readNames(step);
  return { names: names.length < 2 ? names : distinctModels(names), isCertain };
}

/** Throws for more names than a request can have. */
export function distinctModels(names: Iterable<string>): string[] {
  const distinct = [...new Set(names)];
  if (distinct.length > MAX_NAMES) throw malformed(`A request can name at most ${MAX_NAMES} models`);
  return distinct;
}

function readNames(step: Step): NamedModels {
  const { upstream, requestType } = step;
  const [path, query] = splitOnce(upstream.target, "?");
  const names = [...inPath(path), ...inQuery(query)];
  const own = step.provider.modelInPath(decoded(step.path));
  if (own !== null) names.push(own);
  const isNamedByPath = own !== null;
  if (READING.has(upstream.method)) return { names, isCertain: true };
  // What an unknown path runs is not known, whatever the body says.
  if (requestType === "" && !isNamedByPath && !COUNTS_TOKENS.test(step.path))
    return { names, isCertain: false };
  const inBody = isEncoded(upstream.headers) ? null : readBody(upstream.body);
  if (inBody === null) return { names, isCertain: isNamedByPath && upstream.body.kind === "none" };
  const all = [...names, ...inBody];
  return { names: all, isCertain: isNamedByPath || inBody.length > 0 };
}

/** Null when the body is not one whole JSON object. */
function readBody(body: RequestBody): string[] | null {
  if (body.kind !== "whole") return null;
  const members = readEachMember(body.bytes, (name) => MEMBERS.has(name.toLowerCase()));
  if (members === null) return null;
  const names: string[] = [];
  for (const { name, value } of members) {
    if (name.toLowerCase() === "tools") collectOfTools(value, names);
    else collect(value, names);
  }
  return names;
}

function collect(value: unknown, names: string[]): void {
  if (typeof value === "string") names.push(value);
  else if (Array.isArray(value)) for (const item of value) collect(item, names);
  else if (typeof value === "object" && value !== null) {
    for (const [key, item] of Object.entries(value)) if (key.toLowerCase() === "model") collect(item, names);
  }
}

/** A hosted tool can run a model of its own. */
function collectOfTools(tools: unknown, names: string[]): void {
  if (!Array.isArray(tools)) return;
  for (const tool of tools) if (typeof tool === "object" && tool !== null) collect(tool, names);
}

/** A path without any of these, and without escapes, names no model. */
const MAY_NAME_MODEL = /%|models?\/|deployments\/|engines\/|endpoints\/|inference-profile\//i;

function inPath(path: string): string[] {
  if (!MAY_NAME_MODEL.test(path)) return NO_NAMES;
  const segments = path.split(/\/|%2f/i).map(decoded);
  return segments.flatMap((segment, i) => {
    if (!MODEL_SEGMENTS.has((segments[i - 1] ?? "").toLowerCase())) return [];
    // Google's methods follow a colon: models/gemini-pro:generateContent.
    const name = segment.startsWith("arn:")
      ? `${segment}/${segments[i + 1] ?? ""}`
      : segment.replace(/:[a-z]+$/i, "");
    return name === "" || NOT_A_MODEL.has(name) ? [] : [name];
  });
}

function inQuery(query: string): string[] {
  if (!/model/i.test(decoded(query))) return [];
  return [...new URLSearchParams(query)]
    .filter(([name]) => name.toLowerCase() === "model")
    .map(([, value]) => value);
}

function isEncoded(headers: readonly string[]): boolean {
  return headers.some(
    (name, i) =>
      i % 2 === 0 &&
      name.toLowerCase() === "content-encoding" &&
      headers[i + 1]?.trim().toLowerCase() !== "identity",
  );
}

function decoded(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function splitOnce(text: string, separator: string): readonly [string, string] {
  const at = text.indexOf(separator);
  return at === -1 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}
