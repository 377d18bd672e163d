/** The built-in providers, with their public base addresses; the configuration may replace each address. */
import {
  azurePath,
  bedrockPath,
  huggingfacePath,
  ollamaPath,
  vertexPath,
  workersAiPath,
} from "./path-rules.ts";
import { OPENAI_COMPATIBLE_PROVIDERS } from "./openai-compatible.ts";
import { bare, openAiBelow, openAiPath, type ProviderDefinition, samePath } from "./provider.ts";
import {
  CHAT_API,
  geminiApi,
  MESSAGES_API,
  NO_APIS,
  NO_FURTHER,
  OPENAI_EMBEDDINGS,
  OPENAI_SHAPED,
  type ProviderApis,
  sameApis,
  SEARCHES,
} from "./provider-api.ts";
import { bedrockApis, vertexApis } from "./cloud-apis.ts";

const GEMINI_MODEL = /(?:^|\/)models\/([^/:]+)/;
/** A resource name has a slash of its own. */
const BEDROCK_MODEL = /\/model\/((?:arn:[^/]+\/)?[^/]+)\//;

const GEMINI_APIS: ProviderApis = {
  calls: [{ ...geminiApi("v1beta/models"), traits: SEARCHES }],
  embeddings: { dialect: "gemini", path: (model) => `v1beta/models/${model}:batchEmbedContents` },
  countTokens: null,
  further: (endpoint) =>
    /^(?:images\/generations|batches)/.test(endpoint) ? `v1beta/openai/${endpoint}` : null,
};
const ANTHROPIC_APIS: ProviderApis = {
  calls: [{ ...MESSAGES_API, traits: SEARCHES }],
  embeddings: null,
  countTokens: "messages/count_tokens",
  further: (endpoint) => (/^(?:files|messages\/batches)(?:\/|$)/.test(endpoint) ? endpoint : null),
};

/** APIs without conversations: speech, images, searches. All of their paths are forwarded unchanged. */
const NATIVE_ONLY: readonly ProviderDefinition[] = [
  native("fal", "https://fal.run", "authorization", (key) => `Key ${key}`),
  native("ideogram", "https://api.ideogram.ai", "api-key", bare),
  native("cartesia", "https://api.cartesia.ai", "x-api-key", bare),
  native("deepgram", "https://api.deepgram.com", "authorization", (key) => `Token ${key}`),
  native("elevenlabs", "https://api.elevenlabs.io", "xi-api-key", bare),
];

function native(
  slug: string,
  baseUrl: string,
  header: string,
  toCredential: (key: string) => string,
): ProviderDefinition {
  const credentialHeaders = header === "authorization" ? [header] : [header, "authorization"];
  return { slug, baseUrl, credentialHeaders, toCredential, rule: samePath, apis: () => NO_APIS };
}

const OTHERS: readonly ProviderDefinition[] = [
  {
    slug: "anthropic",
    baseUrl: "https://api.anthropic.com/v1",
    credentialHeaders: ["x-api-key", "authorization"],
    toCredential: bare,
    rule: openAiPath,
    apis: () => ANTHROPIC_APIS,
  },
  {
    slug: "google-ai-studio",
    baseUrl: "https://generativelanguage.googleapis.com",
    acceptsKeyInQuery: true,
    credentialHeaders: ["x-goog-api-key", "authorization"],
    toCredential: bare,
    rule: openAiBelow("v1beta/openai/"),
    modelInPath: (path) => GEMINI_MODEL.exec(path)?.[1] ?? null,
    apis: () => GEMINI_APIS,
  },
  {
    slug: "google-vertex-ai",
    baseUrl: "https://{0}aiplatform.googleapis.com",
    acceptsKeyInQuery: true,
    rule: vertexPath,
    modelInPath: (path) => GEMINI_MODEL.exec(path)?.[1] ?? null,
    apis: vertexApis,
  },
  {
    slug: "azure-openai",
    baseUrl: "https://{0}.openai.azure.com",
    hasCustomerHosts: true,
    credentialHeaders: ["api-key", "authorization"],
    toCredential: bare,
    rule: azurePath,
    modelInPath: (path) => {
      const deployment = path.split("/")[1];
      return deployment === undefined || deployment === "openai" ? null : deployment;
    },
    apis: sameApis(
      [
        { dialect: "chat", path: () => "/openai/v1/chat/completions" },
        { dialect: "responses", path: () => "/openai/v1/responses", traits: SEARCHES },
      ],
      { dialect: "chat", path: () => "/openai/v1/embeddings" },
      (endpoint) => `/openai/v1/${endpoint}`,
    ),
  },
  {
    slug: "aws-bedrock",
    baseUrl: "https://bedrock-runtime.{0}.amazonaws.com",
    rule: bedrockPath,
    modelInPath: (path) => BEDROCK_MODEL.exec(path)?.[1] ?? null,
    apis: bedrockApis,
  },
  {
    slug: "workers-ai",
    baseUrl: "https://api.cloudflare.com/client/v4",
    rule: workersAiPath,
    modelInPath: (path) => (path.includes("@") ? path.replace(/^run\//, "") : null),
    apis: sameApis([CHAT_API], OPENAI_EMBEDDINGS, NO_FURTHER),
  },
  {
    slug: "cohere",
    baseUrl: "https://api.cohere.com",
    rule: openAiBelow("compatibility/v1/", ["chat/completions", "embeddings"]),
    apis: sameApis([CHAT_API], OPENAI_EMBEDDINGS, (endpoint) => (endpoint === "rerank" ? "v2/rerank" : null)),
  },
  {
    slug: "huggingface",
    baseUrl: "https://router.huggingface.co",
    rule: huggingfacePath,
    apis: sameApis([CHAT_API], null, NO_FURTHER),
  },
  { slug: "ollama", baseUrl: "http://127.0.0.1:11434", rule: ollamaPath, apis: OPENAI_SHAPED },
  {
    slug: "parallel",
    baseUrl: "https://api.parallel.ai",
    credentialHeaders: ["x-api-key", "authorization"],
    toCredential: bare,
    rule: samePath,
    apis: sameApis([CHAT_API], null, NO_FURTHER),
  },
  {
    slug: "github-models",
    baseUrl: "https://models.github.ai/inference",
    rule: openAiPath,
    apis: sameApis([CHAT_API], OPENAI_EMBEDDINGS),
  },
];

export const BUILT_IN_PROVIDERS: readonly ProviderDefinition[] = [
  ...OPENAI_COMPATIBLE_PROVIDERS,
  ...OTHERS,
  ...NATIVE_ONLY,
];
