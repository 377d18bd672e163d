/** Every built-in provider: where a call of a unified door goes, in which dialect, and with which credential. */
import { describe, expect, it } from "vitest";
import { BUILT_IN_PROVIDERS } from "./built-in.ts";
import { createProvider, type Provider } from "./provider.ts";
import type { ProviderApi } from "./provider-api.ts";

const PLACE = { region: "eu-west-1", project: "proj" };
const BEARER = "authorization: Bearer KEY";

/** The slug, the address of a call without a stream, its dialect, the credential of the key `KEY`. */
const OPENAI_SHAPED: readonly (readonly [slug: string, address: string])[] = [
  ["openai", "https://api.openai.com/v1/chat/completions"],
  ["groq", "https://api.groq.com/openai/v1/chat/completions"],
  ["grok", "https://api.x.ai/v1/chat/completions"],
  ["mistral", "https://api.mistral.ai/v1/chat/completions"],
  ["deepseek", "https://api.deepseek.com/chat/completions"],
  ["perplexity-ai", "https://api.perplexity.ai/chat/completions"],
  ["cerebras", "https://api.cerebras.ai/v1/chat/completions"],
  ["openrouter", "https://openrouter.ai/api/v1/chat/completions"],
  ["fireworks", "https://api.fireworks.ai/inference/v1/chat/completions"],
  ["together", "https://api.together.xyz/v1/chat/completions"],
  ["replicate", "https://api.replicate.com/v1/chat/completions"],
  ["vllm", "http://127.0.0.1:8000/v1/chat/completions"],
  ["lmstudio", "http://127.0.0.1:1234/v1/chat/completions"],
  ["ollama", "http://127.0.0.1:11434/v1/chat/completions"],
  ["ai21", "https://api.ai21.com/studio/v1/chat/completions"],
  ["alibaba", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1/chat/completions"],
  ["baseten", "https://inference.baseten.co/v1/chat/completions"],
  ["chutes", "https://llm.chutes.ai/v1/chat/completions"],
  ["cohere", "https://api.cohere.com/compatibility/v1/chat/completions"],
  ["deepinfra", "https://api.deepinfra.com/v1/openai/chat/completions"],
  ["digitalocean", "https://inference.do-ai.run/v1/chat/completions"],
  ["featherless", "https://api.featherless.ai/v1/chat/completions"],
  ["friendli", "https://api.friendli.ai/serverless/v1/chat/completions"],
  ["github-models", "https://models.github.ai/inference/chat/completions"],
  ["huggingface", "https://router.huggingface.co/v1/chat/completions"],
  ["hyperbolic", "https://api.hyperbolic.xyz/v1/chat/completions"],
  ["inception", "https://api.inceptionlabs.ai/v1/chat/completions"],
  ["inference-net", "https://api.inference.net/v1/chat/completions"],
  ["ionet", "https://api.intelligence.io.solutions/api/v1/chat/completions"],
  ["jina", "https://api.jina.ai/v1/chat/completions"],
  ["llama", "https://api.llama.com/compat/v1/chat/completions"],
  ["minimax", "https://api.minimax.io/v1/chat/completions"],
  ["modelscope", "https://api-inference.modelscope.cn/v1/chat/completions"],
  ["moonshot", "https://api.moonshot.ai/v1/chat/completions"],
  ["morph", "https://api.morphllm.com/v1/chat/completions"],
  ["nebius", "https://api.tokenfactory.nebius.com/v1/chat/completions"],
  ["novita", "https://api.novita.ai/openai/v1/chat/completions"],
  ["nvidia", "https://integrate.api.nvidia.com/v1/chat/completions"],
  ["ovhcloud", "https://oai.endpoints.kepler.ai.cloud.ovh.net/v1/chat/completions"],
  ["poe", "https://api.poe.com/v1/chat/completions"],
  ["requesty", "https://router.requesty.ai/v1/chat/completions"],
  ["sambanova", "https://api.sambanova.ai/v1/chat/completions"],
  ["scaleway", "https://api.scaleway.ai/v1/chat/completions"],
  ["siliconflow", "https://api.siliconflow.com/v1/chat/completions"],
  ["stepfun", "https://api.stepfun.com/v1/chat/completions"],
  ["upstage", "https://api.upstage.ai/v1/chat/completions"],
  ["venice", "https://api.venice.ai/api/v1/chat/completions"],
  ["vercel", "https://ai-gateway.vercel.sh/v1/chat/completions"],
  ["wandb", "https://api.inference.wandb.ai/v1/chat/completions"],
  ["workers-ai", "https://api.cloudflare.com/client/v4/accounts/acc/ai/v1/chat/completions"],
  ["writer", "https://api.writer.com/v1/chat/completions"],
  ["zai", "https://api.z.ai/api/paas/v4/chat/completions"],
];

const OTHERS: readonly (readonly [
  slug: string,
  model: string,
  dialect: string,
  address: string,
  credential: string,
])[] = [
  ["anthropic", "m", "messages", "https://api.anthropic.com/v1/messages", "x-api-key: KEY"],
  [
    "google-ai-studio",
    "m",
    "gemini",
    "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent",
    "x-goog-api-key: KEY",
  ],
  [
    "google-vertex-ai",
    "gemini-3",
    "gemini",
    "https://eu-west-1-aiplatform.googleapis.com/v1/projects/proj/locations/eu-west-1/publishers/google/models/gemini-3:generateContent",
    BEARER,
  ],
  [
    "google-vertex-ai",
    "claude-opus-5",
    "messages",
    "https://eu-west-1-aiplatform.googleapis.com/v1/projects/proj/locations/eu-west-1/publishers/anthropic/models/claude-opus-5:rawPredict",
    BEARER,
  ],
  [
    "google-vertex-ai",
    "meta/llama-4",
    "chat",
    "https://eu-west-1-aiplatform.googleapis.com/v1/projects/proj/locations/eu-west-1/endpoints/openapi/chat/completions",
    BEARER,
  ],
  [
    "aws-bedrock",
    "us.anthropic.claude-opus-5-v1:0",
    "messages",
    "https://bedrock-runtime.eu-west-1.amazonaws.com/model/us.anthropic.claude-opus-5-v1%3A0/invoke",
    BEARER,
  ],
  [
    "aws-bedrock",
    "openai.gpt-oss-120b-1:0",
    "chat",
    "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1/chat/completions",
    BEARER,
  ],
  ["parallel", "m", "chat", "https://api.parallel.ai/chat/completions", "x-api-key: KEY"],
];

/** Speech, images and the like: all paths are forwarded unchanged. */
const NATIVE: readonly (readonly [slug: string, path: string, address: string, credential: string])[] = [
  ["fal", "fal-ai/flux", "https://fal.run/fal-ai/flux", "authorization: Key KEY"],
  ["ideogram", "v1/generate", "https://api.ideogram.ai/v1/generate", "api-key: KEY"],
  ["cartesia", "tts/bytes", "https://api.cartesia.ai/tts/bytes", "x-api-key: KEY"],
  ["deepgram", "v1/speak", "https://api.deepgram.com/v1/speak", "authorization: Token KEY"],
  ["elevenlabs", "v1/text-to-speech/v", "https://api.elevenlabs.io/v1/text-to-speech/v", "xi-api-key: KEY"],
  ["voyage", "embeddings", "https://api.voyageai.com/v1/embeddings", BEARER],
];

function find(slug: string, baseUrl?: string): Provider {
  const definition = BUILT_IN_PROVIDERS.find((candidate) => candidate.slug === slug);
  if (definition === undefined) throw new Error(`no provider ${slug}`);
  return createProvider(definition, { place: PLACE, ...(baseUrl === undefined ? {} : { baseUrl }) });
}

function address(provider: Provider, path: string): string {
  const { origin, path: located } = path.startsWith("/")
    ? provider.locateAtHost(path)
    : provider.locate(path, "acc");
  return `${origin.isTls ? "https" : "http"}://${origin.hostHeader}${located}`;
}

function credential(provider: Provider): string {
  return `${provider.credentialHeaders[0]}: ${provider.toCredential("KEY")}`;
}

const pathOf = (api: ProviderApi | undefined, model: string, isStream = false) =>
  api?.path(encodeURIComponent(model), isStream) ?? "";

describe("a call through a unified door", () => {
  const all = [...OPENAI_SHAPED.map(([slug, url]) => [slug, "m", "chat", url, BEARER] as const), ...OTHERS];

  it.each(all)("%s, model %s: %s at %s, %s", (slug, model, dialect, url, header) => {
    const provider = find(slug);
    const [api] = provider.apisFor(model).calls;
    expect(api?.dialect).toBe(dialect);
    expect(address(provider, pathOf(api, model))).toBe(url);
    expect(credential(provider)).toBe(header);
  });

  it.each(NATIVE)("%s: %s is forwarded to %s, %s", (slug, path, url, header) => {
    const provider = find(slug);
    expect(provider.apisFor("m").calls).toEqual([]);
    expect(address(provider, path)).toBe(url);
    expect(credential(provider)).toBe(header);
  });

  it("goes to a resource of Azure that the configuration names", () => {
    expect(find("azure-openai").isHostOfCaller).toBe(true);
    const provider = find("azure-openai", "https://mine.openai.azure.com");
    expect(provider.isHostOfCaller).toBe(false);
    const { calls, embeddings } = provider.apisFor("deployment");
    expect(calls.map((api) => address(provider, pathOf(api, "deployment")))).toEqual([
      "https://mine.openai.azure.com/openai/v1/chat/completions",
      "https://mine.openai.azure.com/openai/v1/responses",
    ]);
    expect(address(provider, embeddings?.path("d") ?? "")).toBe(
      "https://mine.openai.azure.com/openai/v1/embeddings",
    );
    expect(credential(provider)).toBe("api-key: KEY");
  });

  it("every built-in provider has a case", () => {
    const tested = new Set(["azure-openai", ...[...all, ...NATIVE].map(([slug]) => slug)]);
    expect(BUILT_IN_PROVIDERS.map(({ slug }) => slug).filter((slug) => !tested.has(slug))).toEqual([]);
    expect(new Set(BUILT_IN_PROVIDERS.map(({ slug }) => slug)).size).toBe(BUILT_IN_PROVIDERS.length);
  });
});

describe("further dialects", () => {
  it.each([
    ["openai", "responses", "https://api.openai.com/v1/responses"],
    ["groq", "responses", "https://api.groq.com/openai/v1/responses"],
    ["grok", "responses", "https://api.x.ai/v1/responses"],
    ["openrouter", "responses", "https://openrouter.ai/api/v1/responses"],
    ["openrouter", "messages", "https://openrouter.ai/api/v1/messages"],
    ["deepseek", "messages", "https://api.deepseek.com/anthropic/v1/messages"],
    ["minimax", "messages", "https://api.minimax.io/anthropic/v1/messages"],
    ["moonshot", "messages", "https://api.moonshot.ai/anthropic/v1/messages"],
    ["zai", "messages", "https://api.z.ai/api/anthropic/v1/messages"],
  ])("%s speaks %s at %s", (slug, dialect, url) => {
    const provider = find(slug);
    const api = provider.apisFor("m").calls.find((one) => one.dialect === dialect);
    expect(address(provider, pathOf(api, "m"))).toBe(url);
  });

  it("streams have their own paths at Gemini, Vertex AI and Bedrock", () => {
    const path = (slug: string, model: string) => pathOf(find(slug).apisFor(model).calls[0], model, true);
    expect(path("google-ai-studio", "m")).toBe("v1beta/models/m:streamGenerateContent?alt=sse");
    expect(path("google-vertex-ai", "claude-x")).toMatch(/claude-x:streamRawPredict$/);
    expect(path("aws-bedrock", "anthropic.claude-x")).toMatch(/claude-x\/invoke-with-response-stream$/);
  });

  it("Bedrock and Vertex AI need a place", () => {
    for (const slug of ["aws-bedrock", "google-vertex-ai"]) {
      const definition = BUILT_IN_PROVIDERS.find((candidate) => candidate.slug === slug);
      if (definition === undefined) throw new Error(`no provider ${slug}`);
      expect(() => createProvider(definition).apisFor("m")).toThrow(`providers.${slug}.`);
    }
  });
});

describe("a configured address with a path", () => {
  const at = (slug: string, baseUrl: string, path: string) => {
    const definition = BUILT_IN_PROVIDERS.find((one) => one.slug === slug);
    if (definition === undefined) throw new Error(slug);
    return createProvider(definition, { baseUrl }).locateAtHost(path).path;
  };

  it.each([
    ["deepseek", "http://proxy/deepseek", "/deepseek/anthropic/v1/messages"],
    ["deepseek", "http://proxy/deepseek/", "/deepseek/anthropic/v1/messages"],
    ["deepseek", "http://proxy", "/anthropic/v1/messages"],
    ["minimax", "http://proxy/minimax/v1", "/minimax/anthropic/v1/messages"],
    ["minimax", "http://proxy/minimax", "/minimax/anthropic/v1/messages"],
    ["zai", "http://proxy/z/api/paas/v4", "/z/anthropic/v1/messages"],
    ["zai", "http://proxy/api/paas/v4", "/anthropic/v1/messages"],
    ["zai", "http://proxy/z/api", "/z/anthropic/v1/messages"],
    ["azure-openai", "http://proxy/azure", "/azure/anthropic/v1/messages"],
  ])("has the second API of %s at %s below it", (slug, baseUrl, expected) => {
    expect(at(slug, baseUrl, "/anthropic/v1/messages")).toBe(expected);
  });
});
