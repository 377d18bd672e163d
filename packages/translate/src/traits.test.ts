import { describe, expect, it } from "vitest";
import { defaultTraits } from "./index.ts";

describe("traits guessed from a model's name", () => {
  it.each([
    ["claude-3-5-sonnet-20241022", "none", "both"],
    ["claude-3-7-sonnet-20250219", "budget", "both"],
    ["claude-opus-4-20250514", "budget", "one"],
    ["claude-sonnet-4-5-20250929", "budget", "one"],
    ["anthropic.claude-opus-4-6-v1:0", "adaptive", "one"],
    ["claude-opus-4-7", "adaptive", "none"],
    ["claude-fable-5", "adaptive", "none"],
    ["claude-opus-10", "adaptive", "none"],
    ["claude-opus-latest", "adaptive", "none"],
    ["anthropic.claude-v2:1", "none", "both"],
    ["arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc", "none", "both"],
    ["some-other-model", "none", "both"],
  ] as const)("%s (messages) takes reasoning as %s and sampling of %s", (model, reasoning, sampling) => {
    expect(defaultTraits("messages", model)).toMatchObject({ reasoning, sampling });
  });

  it.each([
    ["gpt-4o", "none", "both", "max_completion_tokens"],
    ["gpt-5-nano", "effort", "none", "max_completion_tokens"],
    ["o3", "effort", "none", "max_completion_tokens"],
    ["gpt-5-chat-latest", "none", "both", "max_completion_tokens"],
    ["deepseek-chat", "none", "both", "max_tokens"],
    ["llama-4", "none", "both", "max_tokens"],
    ["qwen/qwen3-32b", "none", "both", "max_tokens"],
    ["magistral-medium-latest", "none", "both", "max_tokens"],
    ["a-model-of-tomorrow", "none", "both", "max_tokens"],
    ["openai/gpt-oss-120b", "effort", "both", "max_completion_tokens"],
  ] as const)(
    "%s (chat) takes reasoning as %s, sampling of %s and %s",
    (model, reasoning, sampling, maxTokensField) => {
      expect(defaultTraits("chat", model)).toMatchObject({ reasoning, sampling, maxTokensField });
    },
  );

  it.each([
    ["gemini-2.0-flash", "none"],
    ["gemini-2.5-flash", "budget"],
    ["gemini-3-pro-preview", "effort"],
    ["gemini-flash-latest", "effort"],
    ["gemma-3-27b-it", "none"],
    ["some-other-model", "none"],
  ] as const)("%s (gemini) takes reasoning as %s", (model, reasoning) => {
    expect(defaultTraits("gemini", model).reasoning).toBe(reasoning);
  });

  it("knows which efforts a model accepts", () => {
    expect(defaultTraits("responses", "gpt-5-mini").efforts).toEqual(["minimal", "low", "medium", "high"]);
    expect(defaultTraits("chat", "gpt-oss-20b").efforts).toEqual(["low", "medium", "high"]);
    expect(defaultTraits("chat", "grok-3-mini").efforts).toEqual(["low", "high"]);
    expect(defaultTraits("responses", "gpt-5.6-terra").efforts).toContain("max");
    expect(defaultTraits("messages", "claude-opus-4-5").efforts).toEqual(["low", "medium", "high"]);
  });
});
