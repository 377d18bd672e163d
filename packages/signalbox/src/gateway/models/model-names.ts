/**
 * What a model's name at a unified door means: a provider and the name of the model there, or a route.
 *
 * The first that applies: a name of the configuration (`gateway.models`), a pattern of the configuration, `dynamic/{route}`,
 * `provider/model`, and for a name without provider the usual names of the large makers, so that a client with its own defaults (Claude
 * Code, Codex) needs no configuration.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Provider, ProviderDirectory } from "../providers/provider.ts";
import { toModelName } from "../step/model-name.ts";

export type NamedModel =
  | {
      readonly kind: "model";
      readonly provider: Provider;
      readonly model: string;
      /** Whether the caller wrote the provider. */
      readonly isExplicit: boolean;
    }
  | { readonly kind: "route"; readonly name: string };

export const ROUTE_PREFIX = "dynamic/";
/** The route that chooses among models by itself (`routes/auto-router.ts`). Routes of gateways have no `/` in their names. */
export const AUTO_ROUTE = "cloudflare/auto";
const AUTO_NAMES: ReadonlySet<string> = new Set([AUTO_ROUTE, "auto"]);

/** Other names of providers in `provider/model`. */
const PROVIDER_ALIASES: Readonly<Record<string, string>> = {
  aws: "aws-bedrock",
  azure: "azure-openai",
  bedrock: "aws-bedrock",
  cloudflare: "workers-ai",
  google: "google-ai-studio",
  gemini: "google-ai-studio",
  moonshotai: "moonshot",
  perplexity: "perplexity-ai",
  vertex: "google-vertex-ai",
  "x-ai": "grok",
  xai: "grok",
  "z-ai": "zai",
};

/** Names of Workers AI's models begin with their catalogue. */
const WORKERS_AI_MODEL = /^@(?:cf|hf)\//;

const USUAL_NAMES: readonly (readonly [pattern: string, target: string])[] = [
  ["claude-*", "anthropic/*"],
  ["gpt-*", "openai/*"],
  ["chatgpt-*", "openai/*"],
  ["codex-*", "openai/*"],
  ["o1*", "openai/*"],
  ["o3*", "openai/*"],
  ["o4*", "openai/*"],
  ["text-embedding-3-*", "openai/*"],
  ["text-embedding-ada-*", "openai/*"],
  ["whisper-1", "openai/*"],
  ["tts-1*", "openai/*"],
  ["dall-e-*", "openai/*"],
  ["omni-moderation-*", "openai/*"],
  ["text-moderation-*", "openai/*"],
  ["davinci-002", "openai/*"],
  ["babbage-002", "openai/*"],
  ["gemini-*", "google-ai-studio/*"],
  ["grok-*", "grok/*"],
  ["deepseek-*", "deepseek/*"],
  ["rerank-v*", "cohere/*"],
  ["rerank-english-*", "cohere/*"],
  ["rerank-multilingual-*", "cohere/*"],
  ["rerank-2*", "voyage/*"],
  ["jina-reranker-*", "jina/*"],
  ["echo", "echo/*"],
];

interface Pattern {
  readonly parts: readonly string[];
  readonly target: string;
}

export class ModelNames {
  readonly #providers: ProviderDirectory;
  readonly #exact: ReadonlyMap<string, string>;
  readonly #patterns: readonly Pattern[];
  readonly #usual = USUAL_NAMES.map(([pattern, target]) => ({ parts: pattern.split("*"), target }));

  constructor(configured: Readonly<Record<string, string>>, providers: ProviderDirectory) {
    const all = Object.entries(configured);
    this.#providers = providers;
    this.#exact = new Map(all.filter(([name]) => !name.includes("*")));
    this.#patterns = all
      .filter(([name]) => name.includes("*"))
      .map(([name, target]) => ({ parts: name.split("*"), target }));
  }

  /** Names of the configuration that are no patterns. */
  get aliases(): IterableIterator<string> {
    return this.#exact.keys();
  }

  /** Throws `gateway_unknown_provider` when the name means no provider. */
  resolve(accountId: string, name: string): NamedModel {
    const found = this.find(accountId, name);
    if (found !== null) return found;
    throw new SignalboxError("gateway_unknown_provider", {
      message: `Unknown model ${JSON.stringify(name.slice(0, 128))}: expected provider/model, or a name that the configuration defines (gateway.models)`,
      param: "model",
    });
  }

  /** Null when the name means no provider. */
  find(accountId: string, name: string): NamedModel | null {
    if (toModelName(name) === null) return null;
    const configured = this.#exact.get(name) ?? findTarget(this.#patterns, name);
    if (configured !== undefined) return this.#split(accountId, configured, false);
    if (AUTO_NAMES.has(name)) return { kind: "route", name: AUTO_ROUTE };
    if (name.includes("/")) return this.#split(accountId, name, true);
    const usual = findTarget(this.#usual, name);
    return usual === undefined ? null : this.#split(accountId, usual, false);
  }

  #split(accountId: string, name: string, isExplicit: boolean): NamedModel | null {
    if (name.startsWith(ROUTE_PREFIX)) return { kind: "route", name: name.slice(ROUTE_PREFIX.length) };
    const slash = name.indexOf("/");
    const prefix = name.slice(0, slash);
    const isWorkersAi = WORKERS_AI_MODEL.test(name);
    const alias = Object.hasOwn(PROVIDER_ALIASES, prefix) ? PROVIDER_ALIASES[prefix] : undefined;
    const provider =
      (isWorkersAi ? undefined : this.#providers.find(accountId, prefix)) ??
      this.#providers.find(accountId, isWorkersAi ? "workers-ai" : (alias ?? ""));
    const model = isWorkersAi ? name : name.slice(slash + 1);
    return provider === undefined || model === "" ? null : { kind: "model", provider, model, isExplicit };
  }
}

function findTarget(patterns: readonly Pattern[], name: string): string | undefined {
  const found = patterns.find(({ parts }) => matches(parts, name));
  // A function, because the name may contain `$&`.
  return found?.target.replace("*", () => name.slice(name.indexOf("/") + 1));
}

/** Whether the text consists of the parts, in their order, with any text between them. Takes linear time for each part. */
function matches(parts: readonly string[], text: string): boolean {
  const [first = "", ...rest] = parts;
  const last = rest.pop();
  if (last === undefined) return text === first;
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last))
    return false;
  const end = text.length - last.length;
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}
