/**
 * The models of Amazon Bedrock and Google Vertex AI. Each hosts models of several makers, and the name of a model decides which API it
 * has.
 */
import { SignalboxError } from "@signalbox/protocol";
import { readAwsEventStream } from "./aws-event-stream.ts";
import { CONVERSE, ConverseEvents, UNSET_LIMIT } from "./converse.ts";
import {
  CHAT_API,
  geminiApi,
  NO_FURTHER,
  type ProviderApi,
  type ProviderApis,
  type ProviderPlace,
  SEARCHES,
} from "./provider-api.ts";

/** Also with the prefix of an inference profile: `us.anthropic.claude-…`. */
const BEDROCK_CLAUDE = /(?:^|[./])anthropic\./;
/** Required in place of the header `anthropic-version`, and of the model, which stands in the path. */
const BEDROCK_VERSION = { name: "anthropic_version", value: "bedrock-2023-05-31" };
const VERTEX_VERSION = { name: "anthropic_version", value: "vertex-2023-10-16" };

/** As Amazon lists them; a call with another one gets "invalid beta flag". */
const BEDROCK_BETAS = {
  member: "anthropic_beta",
  known: new Set([
    "computer-use-2024-10-22",
    "computer-use-2025-01-24",
    "context-1m-2025-08-07",
    "context-management-2025-06-27",
    "dev-full-thinking-2025-05-14",
    "effort-2025-11-24",
    "interleaved-thinking-2025-05-14",
    "output-128k-2025-02-19",
    "token-efficient-tools-2025-02-19",
    "tool-examples-2025-10-29",
    "tool-search-tool-2025-10-19",
  ]),
};

/** OpenAI's open models; also with the prefix of an inference profile. */
const BEDROCK_OPENAI = /(?:^|[./])openai\./;

/** What is known of all models of Converse. */
const CONVERSE_TRAITS = {
  maxOutputTokens: UNSET_LIMIT,
  reasoning: "none",
  sampling: "both",
  structuredOutput: false,
  takesSystemMessages: false,
} as const;

/** Claude has its own API, OpenAI's models have the OpenAI-compatible one, and all others have Converse. */
export function bedrockApis(model: string, { region }: ProviderPlace): ProviderApis {
  if (region === null) throw unset("aws-bedrock", "region");
  const base = `bedrock-runtime/${region}`;
  const api: ProviderApi = BEDROCK_CLAUDE.test(model)
    ? {
        dialect: "messages",
        path: (name, isStream) =>
          `${base}/model/${name}/${isStream ? "invoke-with-response-stream" : "invoke"}`,
        inPlaceOfModel: BEDROCK_VERSION,
        betas: BEDROCK_BETAS,
        without: ["stream"],
        unframe: readAwsEventStream,
      }
    : BEDROCK_OPENAI.test(model)
      ? { ...CHAT_API, path: () => `${base}/chat/completions` }
      : {
          dialect: "messages",
          path: (name, isStream) => `${base}/model/${name}/${isStream ? "converse-stream" : "converse"}`,
          form: CONVERSE,
          traits: CONVERSE_TRAITS,
          unframe: (send, handler) => readAwsEventStream(send, handler, new ConverseEvents()),
        };
  return { calls: [api], embeddings: null, countTokens: null, further: NO_FURTHER };
}

/** `claude-…` is Anthropic's, `publisher/model` the OpenAI-compatible endpoint, everything else Gemini. */
export function vertexApis(model: string, { region, project }: ProviderPlace): ProviderApis {
  if (project === null) throw unset("google-vertex-ai", "project");
  const location = `v1/projects/${project}/locations/${region ?? "global"}`;
  return { calls: [vertexApi(model, location)], embeddings: null, countTokens: null, further: NO_FURTHER };
}

function vertexApi(model: string, location: string): ProviderApi {
  if (model.startsWith("claude-")) {
    return {
      dialect: "messages",
      path: (name, isStream) =>
        `${location}/publishers/anthropic/models/${name}:${isStream ? "streamRawPredict" : "rawPredict"}`,
      inPlaceOfModel: VERTEX_VERSION,
      traits: SEARCHES,
    };
  }
  if (model.includes("/"))
    return { ...CHAT_API, path: () => `${location}/endpoints/openapi/chat/completions` };
  return { ...geminiApi(`${location}/publishers/google/models`), traits: SEARCHES };
}

function unset(slug: string, key: string): SignalboxError {
  return new SignalboxError("gateway_malformed_request", {
    message: `${slug} needs a ${key}: set providers.${slug}.${key} in the configuration`,
  });
}
