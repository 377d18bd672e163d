/** OpenAI-compatible providers with a bearer token and one base address: one line each. */
import { openAiPath, type ProviderDefinition } from "./provider.ts";
import {
  type ApiRule,
  CHAT_API,
  chatAndMessages,
  MESSAGES_API,
  OPENAI_SHAPED,
  RESPONSES_API,
  sameApis,
  SEARCHES,
} from "./provider-api.ts";

const CHAT_AND_RESPONSES = sameApis([CHAT_API, RESPONSES_API]);
const WITH_SEARCH = sameApis([CHAT_API, { ...RESPONSES_API, traits: SEARCHES }]);
/** The models expect their earlier reasoning back in `reasoning_content`. */
const REASONS = { takesReasoningContent: true };

const TABLE: readonly (readonly [slug: string, baseUrl: string, apis?: ApiRule])[] = [
  ["openai", "https://api.openai.com/v1", WITH_SEARCH],
  ["groq", "https://api.groq.com/openai/v1", CHAT_AND_RESPONSES],
  ["grok", "https://api.x.ai/v1", WITH_SEARCH],
  // Mistral reports usage in the last event by itself, and refuses fields that it does not know.
  ["mistral", "https://api.mistral.ai/v1", sameApis([{ ...CHAT_API, traits: { streamUsage: false } }])],
  ["deepseek", "https://api.deepseek.com", chatAndMessages(REASONS, "/anthropic/v1/messages")],
  ["perplexity-ai", "https://api.perplexity.ai", sameApis([CHAT_API], null)],
  ["cerebras", "https://api.cerebras.ai/v1"],
  [
    "openrouter",
    "https://openrouter.ai/api/v1",
    sameApis([
      // OpenRouter takes an effort for every model, and leaves it out for those without one.
      {
        ...CHAT_API,
        traits: { takesReasoningContent: true, takesCacheControl: true, reasoning: "effort" },
      },
      RESPONSES_API,
      MESSAGES_API,
    ]),
  ],
  ["fireworks", "https://api.fireworks.ai/inference/v1"],
  ["together", "https://api.together.xyz/v1"],
  ["replicate", "https://api.replicate.com/v1"],
  ["vllm", "http://127.0.0.1:8000/v1"],
  ["lmstudio", "http://127.0.0.1:1234/v1"],
  ["ai21", "https://api.ai21.com/studio/v1"],
  [
    "alibaba",
    "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    sameApis([{ ...CHAT_API, traits: { takesReasoningContent: true, takesCacheControl: true } }]),
  ],
  ["baseten", "https://inference.baseten.co/v1"],
  ["chutes", "https://llm.chutes.ai/v1"],
  ["deepinfra", "https://api.deepinfra.com/v1/openai"],
  ["digitalocean", "https://inference.do-ai.run/v1"],
  ["featherless", "https://api.featherless.ai/v1"],
  ["friendli", "https://api.friendli.ai/serverless/v1"],
  ["hyperbolic", "https://api.hyperbolic.xyz/v1"],
  ["inception", "https://api.inceptionlabs.ai/v1"],
  ["inference-net", "https://api.inference.net/v1"],
  ["ionet", "https://api.intelligence.io.solutions/api/v1"],
  ["jina", "https://api.jina.ai/v1"],
  ["llama", "https://api.llama.com/compat/v1"],
  ["minimax", "https://api.minimax.io/v1", chatAndMessages(REASONS, "/anthropic/v1/messages")],
  ["modelscope", "https://api-inference.modelscope.cn/v1"],
  ["moonshot", "https://api.moonshot.ai/v1", chatAndMessages(REASONS, "/anthropic/v1/messages")],
  ["morph", "https://api.morphllm.com/v1"],
  ["nebius", "https://api.tokenfactory.nebius.com/v1"],
  ["novita", "https://api.novita.ai/openai/v1"],
  ["nvidia", "https://integrate.api.nvidia.com/v1"],
  ["ovhcloud", "https://oai.endpoints.kepler.ai.cloud.ovh.net/v1"],
  ["poe", "https://api.poe.com/v1"],
  ["requesty", "https://router.requesty.ai/v1"],
  ["sambanova", "https://api.sambanova.ai/v1"],
  ["scaleway", "https://api.scaleway.ai/v1"],
  ["siliconflow", "https://api.siliconflow.com/v1"],
  ["stepfun", "https://api.stepfun.com/v1"],
  ["upstage", "https://api.upstage.ai/v1"],
  ["venice", "https://api.venice.ai/api/v1"],
  ["vercel", "https://ai-gateway.vercel.sh/v1", sameApis([CHAT_API, RESPONSES_API, MESSAGES_API])],
  ["voyage", "https://api.voyageai.com/v1", sameApis([])],
  ["wandb", "https://api.inference.wandb.ai/v1"],
  ["writer", "https://api.writer.com/v1", sameApis([CHAT_API], null)],
  ["zai", "https://api.z.ai/api/paas/v4", chatAndMessages(REASONS, "/api/anthropic/v1/messages")],
];

export const OPENAI_COMPATIBLE_PROVIDERS: readonly ProviderDefinition[] = TABLE.map(
  ([slug, baseUrl, apis = OPENAI_SHAPED]): ProviderDefinition => ({ slug, baseUrl, rule: openAiPath, apis }),
);
