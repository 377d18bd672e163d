/** Names of providers in LiteLLM's files → slugs of this service. */

const OTHER_NAMES: Readonly<Record<string, string>> = {
  azure: "azure-openai",
  azure_text: "azure-openai",
  bedrock: "aws-bedrock",
  bedrock_converse: "aws-bedrock",
  cloudflare: "workers-ai",
  cohere_chat: "cohere",
  dashscope: "alibaba",
  fireworks_ai: "fireworks",
  "fireworks_ai-embedding-models": "fireworks",
  gemini: "google-ai-studio",
  github: "github-models",
  hosted_vllm: "vllm",
  jina_ai: "jina",
  lm_studio: "lmstudio",
  nvidia_nim: "nvidia",
  ollama_chat: "ollama",
  openai_like: "openai",
  custom_openai: "openai",
  perplexity: "perplexity-ai",
  "text-completion-openai": "openai",
  together_ai: "together",
  vercel_ai_gateway: "vercel",
  vertex_ai: "google-vertex-ai",
  "vertex_ai-language-models": "google-vertex-ai",
  "vertex_ai-anthropic_models": "google-vertex-ai",
  "vertex_ai-embedding-models": "google-vertex-ai",
  voyage: "voyage",
  xai: "grok",
};

/** Under these names both know the provider. */
const SAME_NAMES: ReadonlySet<string> = new Set([
  "ai21",
  "anthropic",
  "baseten",
  "cerebras",
  "cohere",
  "deepinfra",
  "deepseek",
  "featherless",
  "groq",
  "huggingface",
  "hyperbolic",
  "minimax",
  "mistral",
  "moonshot",
  "nebius",
  "novita",
  "ollama",
  "openai",
  "openrouter",
  "replicate",
  "sambanova",
  "vllm",
  "zai",
]);

/** Names without a provider, as OpenAI's, Anthropic's and Google's own SDKs use them. */
const BARE: readonly (readonly [pattern: RegExp, slug: string])[] = [
  [/^(?:gpt-|chatgpt-|codex-|o\d|text-embedding-|ft:|dall-e|whisper|tts-)/, "openai"],
  [/^claude-/, "anthropic"],
  [/^gemini-/, "google-ai-studio"],
  [/^deepseek-/, "deepseek"],
  [/^grok-/, "grok"],
];

/** Undefined for a provider that this service does not know under any name. */
export function slugOf(name: string): string | undefined {
  if (SAME_NAMES.has(name)) return name;
  return Object.hasOwn(OTHER_NAMES, name) ? OTHER_NAMES[name] : undefined;
}

/** `provider/model`, or a model alone; undefined for an unknown provider. */
export function splitModel(text: string): { readonly slug: string; readonly model: string } | undefined {
  const slash = text.indexOf("/");
  const slug = slash === -1 ? undefined : slugOf(text.slice(0, slash));
  if (slug !== undefined) return { slug, model: text.slice(slash + 1) };
  const bare = slash === -1 ? BARE.find(([pattern]) => pattern.test(text)) : undefined;
  return bare === undefined ? undefined : { slug: bare[1], model: text };
}
