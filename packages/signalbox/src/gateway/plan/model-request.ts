/** A request for a model in the dialect of its client, before a provider is chosen; and the headers of it that go to the provider. */
import { bearerText } from "../../accounts/index.ts";
import { NO_CREDENTIAL } from "./forwarded-request.ts";
import type { CallShare } from "../step/call-share.ts";
import type { CallOptions } from "../step/call-options.ts";
import type { ApiDialect } from "../step/translation.ts";
import type { RequestBody } from "../../engines/relay/index.ts";
import type { CallersAnswers } from "../exchange/kept-answers.ts";
import type { ModelTarget } from "../models/model-target.ts";
import type { StepContext, StepRequest } from "./step-request.ts";

export interface ModelRequest {
  readonly context: StepContext;
  /** The dialect of the client. */
  readonly endpoint: ApiDialect;
  readonly body: RequestBody;
  /** The body as an object. It is parsed once, when it is needed; throws `gateway_malformed_request`. */
  readonly fields: () => Readonly<Record<string, unknown>>;
  readonly isStream: boolean;
  /** The method of Gemini's API for embeddings that the client called; undefined for other calls. */
  readonly embeds?: "embedContent" | "batchEmbedContents" | undefined;
  /** Replaces the path of the provider's API, for a provider that speaks the client's dialect. */
  readonly path?: string | undefined;
  readonly query: string;
  readonly forwarded: StepRequest["forwarded"];
  readonly options: CallOptions;
  readonly share: CallShare;
  /** Earlier answers that the request may refer to; null for a caller that cannot be told apart from others. */
  readonly earlier: CallersAnswers | null;
}

/** The provider whose SDK a door is made for. A key in the SDK's own place is a key of this provider, unless the model names another. */
const HOME: Readonly<Record<ModelRequest["endpoint"], string>> = {
  chat: "openai",
  responses: "openai",
  messages: "anthropic",
  embeddings: "openai",
  gemini: "google-ai-studio",
};

export function homeOf(endpoint: ModelRequest["endpoint"]): string {
  return HOME[endpoint];
}

const ANTHROPIC_VERSION = "2023-06-01";
/** They describe the client's SDK or the body as the client wrote it. */
const REPLACED = /^(?:accept|content-(?!language)[\w-]+|digest|x-stainless-.*|x-app)$/i;
/** What coding agents tell their own vendor about the session: of no use to another provider, and not meant for it. */
const OF_AGENTS = /^(?:x-codex-.*|x-claude-code-.*|originator|session-id|thread-id)$/i;

export function headersFor(
  request: ModelRequest,
  target: ModelTarget,
  dialect: ApiDialect,
): StepRequest["forwarded"] {
  const given = request.forwarded.headers;
  const headers = dialect === request.endpoint ? [...given] : translatedHeaders(given, dialect);
  if (dialect === "messages" && !headers.some((name, i) => i % 2 === 0 && isVersion(name))) {
    headers.push("anthropic-version", ANTHROPIC_VERSION);
  }
  return { headers, credential: credentialFor(request.forwarded, homeOf(request.endpoint), target) };
}

/** The request without the header `anthropic-beta`, for an API that takes betas in its body, and the betas. */
export function takeBetas(request: ModelRequest): {
  readonly request: ModelRequest;
  readonly betas: readonly string[];
} {
  const headers: string[] = [];
  const betas = new Set<string>();
  const given = request.forwarded.headers;
  for (let i = 0; i + 1 < given.length; i += 2) {
    const [name = "", value = ""] = given.slice(i, i + 2);
    if (name.toLowerCase() !== "anthropic-beta") headers.push(name, value);
    else for (const beta of value.split(",")) if (beta.trim() !== "") betas.add(beta.trim());
  }
  return { request: { ...request, forwarded: { ...request.forwarded, headers } }, betas: [...betas] };
}

/** Headers that mean something to another API than the client's. */
function translatedHeaders(given: readonly string[], dialect: ApiDialect): string[] {
  const headers = ["content-type", "application/json"];
  for (let i = 0; i + 1 < given.length; i += 2) {
    const name = given[i] ?? "";
    if (REPLACED.test(name) || OF_AGENTS.test(name) || belongsElsewhere(name.toLowerCase(), dialect))
      continue;
    headers.push(name, given[i + 1] ?? "");
  }
  return headers;
}

function belongsElsewhere(name: string, dialect: ApiDialect): boolean {
  if (name.startsWith("anthropic-")) return dialect !== "messages";
  if (name.startsWith("openai-")) return dialect !== "chat" && dialect !== "responses";
  return name.startsWith("x-goog-") && dialect !== "gemini";
}

function isVersion(name: string): boolean {
  return name.toLowerCase() === "anthropic-version";
}

/**
 * The caller's own key, in the place where the provider expects it. A key goes to a provider only if the caller named the provider, or if
 * it is the provider that the client believes to talk to: an alias of the configuration must not send it to another one.
 */
export function credentialFor(
  { credential }: Pick<StepRequest["forwarded"], "credential">,
  home: string,
  { provider, isExplicit }: ModelTarget,
): readonly string[] {
  const [header, value = ""] = credential;
  const isHome = provider.slug === home;
  if (header === undefined || !(isExplicit || isHome)) return NO_CREDENTIAL;
  // Anthropic takes keys in `x-api-key` and tokens of subscriptions in `authorization`; its SDK knows which.
  if (isHome && provider.credentialHeaders.includes(header)) return [header, value];
  return [
    provider.credentialHeaders[0] ?? "authorization",
    provider.toCredential(bearerText(value) ?? value),
  ];
}
