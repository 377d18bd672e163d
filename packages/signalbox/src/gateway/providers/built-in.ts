/** The built-in providers, with their public base addresses; the configuration may replace each address. */
import {
  azurePath,
  bare,
  bedrockPath,
  huggingfacePath,
  ollamaPath,
  openAiBelow,
  openAiPath,
  type ProviderDefinition,
  vertexPath,
  workersAiPath,
} from "./provider.ts";

/** OpenAI-compatible providers with a bearer token and one base address. */
const OPENAI_COMPATIBLE: readonly (readonly [slug: string, baseUrl: string])[] = [
  ["openai", "https://api.openai.com/v1"],
  ["groq", "https://api.groq.com/openai/v1"],
  ["grok", "https://api.x.ai/v1"],
  ["mistral", "https://api.mistral.ai/v1"],
  ["deepseek", "https://api.deepseek.com"],
  ["perplexity-ai", "https://api.perplexity.ai"],
  ["cerebras", "https://api.cerebras.ai/v1"],
  ["openrouter", "https://openrouter.ai/api/v1"],
  ["fireworks", "https://api.fireworks.ai/inference/v1"],
  ["together", "https://api.together.xyz/v1"],
  ["replicate", "https://api.replicate.com/v1"],
  ["vllm", "http://127.0.0.1:8000/v1"],
];

const GEMINI_MODEL = /(?:^|\/)models\/([^/:]+)/;
const BEDROCK_MODEL = /\/model\/([^/]+)\//;

const OTHERS: readonly ProviderDefinition[] = [
  {
    slug: "anthropic",
    baseUrl: "https://api.anthropic.com/v1",
    credentialHeaders: ["x-api-key", "authorization"],
    toCredential: bare,
    rule: openAiPath,
  },
  {
    slug: "google-ai-studio",
    baseUrl: "https://generativelanguage.googleapis.com",
    acceptsKeyInQuery: true,
    credentialHeaders: ["x-goog-api-key", "authorization"],
    toCredential: bare,
    rule: openAiBelow("v1beta/openai/"),
    modelInPath: (path) => GEMINI_MODEL.exec(path)?.[1] ?? null,
  },
  {
    slug: "google-vertex-ai",
    baseUrl: "https://{0}aiplatform.googleapis.com",
    acceptsKeyInQuery: true,
    rule: vertexPath,
    modelInPath: (path) => GEMINI_MODEL.exec(path)?.[1] ?? null,
  },
  {
    slug: "azure-openai",
    baseUrl: "https://{0}.openai.azure.com",
    credentialHeaders: ["api-key", "authorization"],
    toCredential: bare,
    rule: azurePath,
    modelInPath: (path) => {
      const deployment = path.split("/")[1];
      return deployment === undefined || deployment === "openai" ? null : deployment;
    },
  },
  {
    slug: "aws-bedrock",
    baseUrl: "https://bedrock-runtime.{0}.amazonaws.com",
    rule: bedrockPath,
    modelInPath: (path) => BEDROCK_MODEL.exec(path)?.[1] ?? null,
  },
  {
    slug: "workers-ai",
    baseUrl: "https://api.cloudflare.com/client/v4",
    rule: workersAiPath,
    modelInPath: (path) => (path.includes("@") ? path.replace(/^run\//, "") : null),
  },
  {
    slug: "cohere",
    baseUrl: "https://api.cohere.com",
    rule: openAiBelow("compatibility/v1/", ["chat/completions", "embeddings"]),
  },
  { slug: "huggingface", baseUrl: "https://router.huggingface.co", rule: huggingfacePath },
  { slug: "ollama", baseUrl: "http://127.0.0.1:11434", rule: ollamaPath },
];

export const BUILT_IN_PROVIDERS: readonly ProviderDefinition[] = [
  ...OPENAI_COMPATIBLE.map(([slug, baseUrl]): ProviderDefinition => ({ slug, baseUrl, rule: openAiPath })),
  ...OTHERS,
];
