/** Names of OpenTelemetry's semantic conventions for generative AI, and what our names are there. */
import type { RequestType } from "../step/step.ts";

/** `gen_ai.provider.name`: the values that the conventions list. Other providers keep their slug. */
const PROVIDERS: Readonly<Record<string, string>> = {
  "aws-bedrock": "aws.bedrock",
  "azure-openai": "azure.ai.openai",
  "google-ai-studio": "gcp.gemini",
  "google-vertex-ai": "gcp.vertex_ai",
  grok: "x_ai",
  mistral: "mistral_ai",
  moonshot: "moonshot_ai",
  "perplexity-ai": "perplexity",
};

/** `gen_ai.operation.name`: the values that the conventions list, as far as they fit. */
const OPERATIONS: Readonly<Record<RequestType, string>> = {
  chat: "chat",
  responses: "chat",
  messages: "chat",
  completions: "text_completion",
  embeddings: "embeddings",
  generate_content: "generate_content",
  images: "generate_content",
  audio: "generate_content",
  realtime: "realtime",
  moderations: "moderation",
  models: "list_models",
  "": "request",
};

export function providerNameOf(slug: string): string {
  return Object.hasOwn(PROVIDERS, slug) ? (PROVIDERS[slug] ?? slug) : slug;
}

export function operationOf(requestType: RequestType): string {
  return OPERATIONS[requestType];
}

/** The buckets are those that the conventions recommend. */
export const TOKEN_USAGE = {
  name: "gen_ai.client.token.usage",
  unit: "{token}",
  description: "Number of input and output tokens used.",
  bounds: [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864],
} as const;

export const OPERATION_DURATION = {
  name: "gen_ai.client.operation.duration",
  unit: "s",
  description: "GenAI operation duration.",
  bounds: [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
} as const;
