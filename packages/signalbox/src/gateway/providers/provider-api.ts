/**
 * The APIs of a provider as the unified doors use them: which dialect an API speaks, and at which path. A door prefers the API of the
 * client's own dialect, because the bytes then pass unchanged; otherwise it takes the first one and translates.
 */
import type { Dialect, TargetTraits } from "@signalbox/translate";
import type { Fields } from "../../core/fields.ts";
import type { UpstreamExchange, UpstreamHandler } from "../../engines/relay/index.ts";

export interface ProviderApi {
  readonly dialect: Dialect;
  /**
   * Path and query of a call, below the provider's segment (`chat/completions`), or below its host when it begins with `/`. `model` is
   * encoded for a path.
   */
  readonly path: (model: string, isStream: boolean) => string;
  /** What the provider's models accept; the rest is guessed from the name of the model. */
  readonly traits?: TargetTraits;
  /** The member that stands in the body in place of `model`, for APIs that have the model in the path. */
  readonly inPlaceOfModel?: { readonly name: string; readonly value: string };
  /** For an API that takes the betas of `anthropic-beta` in its body, and refuses a call with one that it does not know. */
  readonly betas?: { readonly member: string; readonly known: ReadonlySet<string> };
  /** Members that the API does not accept in the body. */
  readonly without?: readonly string[];
  /** The API has other bodies than those of its dialect, from which they are made. A request is then always translated. */
  readonly form?: BodyForm;
  /** Turns the API's own framing of a stream into server-sent events. */
  readonly unframe?: (
    send: (handler: UpstreamHandler) => UpstreamExchange,
    handler: UpstreamHandler,
  ) => UpstreamExchange;
}

export interface BodyForm {
  /** The body to send, for a body of the dialect. `model` as in the path, decoded. Throws for what the API cannot express. */
  readonly toBody: (body: Fields, model: string) => Fields;
  /** The body of the dialect, for a whole response. */
  readonly fromBody: (body: unknown) => unknown;
}

/** Embeddings: OpenAI's format, or Gemini's `batchEmbedContents`. */
export interface EmbeddingsApi {
  readonly dialect: "chat" | "gemini";
  readonly path: (model: string) => string;
}

/** The APIs of a provider for one model. */
export interface ProviderApis {
  /** The preferred one first; none when the provider has no API for conversations. */
  readonly calls: readonly ProviderApi[];
  readonly embeddings: EmbeddingsApi | null;
  /** Path of Anthropic's `count_tokens`; null when the provider has none and the gateway estimates. */
  readonly countTokens: string | null;
  /** The path of an endpoint that is not translated (`images/generations`, `files/file-1`); null when the provider has none. */
  readonly further: FurtherRule;
}

export type FurtherRule = (endpoint: string) => string | null;

/** As OpenAI names it. */
const asNamed: FurtherRule = (endpoint) => endpoint;
export const NO_FURTHER: FurtherRule = () => null;

/** What the configuration adds about where the models of a provider are. */
export interface ProviderPlace {
  readonly region: string | null;
  readonly project: string | null;
}

export type ApiRule = (model: string, place: ProviderPlace) => ProviderApis;

const fixed = (dialect: Dialect, path: string): ProviderApi => ({ dialect, path: () => path });

export const CHAT_API = fixed("chat", "chat/completions");
export const RESPONSES_API = fixed("responses", "responses");
/** The provider searches the web for its models. */
export const SEARCHES = { webSearch: true };
export const MESSAGES_API = fixed("messages", "messages");
export const OPENAI_EMBEDDINGS: EmbeddingsApi = { dialect: "chat", path: () => "embeddings" };

export const NO_APIS: ProviderApis = { calls: [], embeddings: null, countTokens: null, further: NO_FURTHER };

/** APIs that are the same for every model. */
export function sameApis(
  calls: readonly ProviderApi[],
  embeddings: EmbeddingsApi | null = OPENAI_EMBEDDINGS,
  further: FurtherRule = asNamed,
): ApiRule {
  const apis = { calls, embeddings, countTokens: null, further };
  return () => apis;
}

export const OPENAI_SHAPED = sameApis([CHAT_API]);

/** For a base address without a version. */
export const UNVERSIONED_OPENAI_SHAPED = sameApis(
  [fixed("chat", "v1/chat/completions")],
  { dialect: "chat", path: () => "v1/embeddings" },
  (endpoint) => `v1/${endpoint}`,
);

/** The chat API with these traits, and Anthropic's format at a path of the host. */
export function chatAndMessages(traits: TargetTraits, messagesPath: string): ApiRule {
  return sameApis([{ ...CHAT_API, traits }, fixed("messages", messagesPath)]);
}

/** Gemini's methods of a model below `models`, a path such as `v1beta/models`. */
export function geminiApi(models: string): ProviderApi {
  return {
    dialect: "gemini",
    path: (model, isStream) =>
      `${models}/${model}:${isStream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
  };
}

/** By dialect, for providers whose dialects the configuration names. */
export const API_BY_DIALECT: Readonly<Record<Dialect, ProviderApi>> = {
  chat: CHAT_API,
  responses: RESPONSES_API,
  messages: MESSAGES_API,
  gemini: geminiApi("v1beta/models"),
};
