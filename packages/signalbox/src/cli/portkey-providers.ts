/** Names of providers in Portkey's configurations → slugs of this service. */
import { slugOf, splitModel } from "./litellm-providers.ts";

export const PORTKEY_PROVIDERS: Readonly<Record<string, string>> = {
  bedrock: "aws-bedrock",
  dashscope: "alibaba",
  "featherless-ai": "featherless",
  "fireworks-ai": "fireworks",
  github: "github-models",
  google: "google-ai-studio",
  "inference-net": "inference-net",
  iointelligence: "ionet",
  "mistral-ai": "mistral",
  "novita-ai": "novita",
  ovhcloud: "ovhcloud",
  siliconflow: "siliconflow",
  "together-ai": "together",
  upstage: "upstage",
  "vertex-ai": "google-vertex-ai",
  "x-ai": "grok",
  "z-ai": "zai",
  zhipu: "zai",
  "azure-openai": "azure-openai",
  "perplexity-ai": "perplexity-ai",
  "workers-ai": "workers-ai",
  jina: "jina",
};

/** Undefined for a provider that this service does not know. */
export function portkeySlug(name: string): string | undefined {
  return Object.hasOwn(PORTKEY_PROVIDERS, name) ? PORTKEY_PROVIDERS[name] : slugOf(name);
}

/** By the usual names of keys (`openai-prod-1a2b3c`): the longest beginning that is the name of a provider. */
export function slugOfKeyName(name: string): string | undefined {
  const words = name.split("-");
  for (let count = words.length; count > 0; count--) {
    const slug = portkeySlug(words.slice(0, count).join("-"));
    if (slug !== undefined) return slug;
  }
  return undefined;
}

/** Of a model without a provider, as OpenAI's, Anthropic's and Google's own SDKs name it. */
export function slugOfModel(model: string): string | undefined {
  return model.includes("/") ? undefined : splitModel(model)?.slug;
}
