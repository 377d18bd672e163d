import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProviderDirectory } from "../providers/provider.ts";
import { createSharedProviders } from "../providers/shared-providers.ts";
import { ModelNames } from "./model-names.ts";

const PROVIDERS = new ProviderDirectory(createSharedProviders({}), () => undefined);

function find(name: string, configured: Record<string, string> = {}): string | null {
  const found = new ModelNames(configured, PROVIDERS).find("default", name);
  if (found === null) return null;
  return found.kind === "route" ? `route ${found.name}` : `${found.provider.slug} ${found.model}`;
}

describe("a name", () => {
  it.each([
    ["openai/gpt-5", "openai gpt-5"],
    ["google/gemini-3", "google-ai-studio gemini-3"],
    ["xai/grok-5", "grok grok-5"],
    ["openrouter/openai/gpt-5", "openrouter openai/gpt-5"],
    ["@cf/meta/llama", "workers-ai @cf/meta/llama"],
    ["workers-ai/@cf/meta/llama", "workers-ai @cf/meta/llama"],
    ["claude-opus-5", "anthropic claude-opus-5"],
    ["o4-mini", "openai o4-mini"],
    ["dynamic/my-route", "route my-route"],
    ["llama", null],
    ["unknown/llama", null],
    ["toString/x", null],
    ["openai/", null],
    ["", null],
  ])("%s means %s", (name, expected) => {
    expect(find(name)).toBe(expected);
  });

  it.each([
    ["smart", { smart: "anthropic/claude-opus-5" }, "anthropic claude-opus-5"],
    ["claude-x", { "claude-*": "aws-bedrock/us.anthropic.*" }, "aws-bedrock us.anthropic.claude-x"],
    ["claude-x", { "claude-*": "groq/*", "claude-x": "openai/gpt" }, "openai gpt"],
    ["openai/gpt-5", { "openai/*": "azure-openai/*" }, "azure-openai gpt-5"],
    ["openai/gpt-5", { "*": "groq/fixed" }, "groq fixed"],
    ["fast", { "f*t": "dynamic/fast" }, "route fast"],
    ["a-b-c", { "a*b*c": "groq/x" }, "groq x"],
    ["abc", { "ab*bc": "groq/x" }, null],
    ["$&-x", { "*-x": "groq/*" }, "groq $&-x"],
  ])("%s with %o means %s", (name, configured, expected) => {
    expect(find(name, configured as Record<string, string>)).toBe(expected);
  });
});

it("matches patterns as a regular expression does", () => {
  const letters = fc.array(fc.constantFrom("a", "b", "*"), { maxLength: 8 }).map((all) => all.join(""));
  const text = fc
    .array(fc.constantFrom("a", "b"), { minLength: 1, maxLength: 10 })
    .map((all) => all.join(""));
  fc.assert(
    fc.property(letters, text, (pattern, name) => {
      const isMatch = new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(name);
      expect(find(name, { [pattern]: "groq/found" }) === "groq found").toBe(isMatch);
    }),
    { numRuns: 500 },
  );
});
