import fc from "fast-check";
import { expect, it } from "vitest";
import { AllowRules } from "./allow-rules.ts";

const models = (...patterns: string[]) => AllowRules.ofModels(patterns);

it("allows what an inclusion matches and no exclusion does", () => {
  const rules = models("openai/gpt-5*", "claude-*", "!*/gpt-5-pro", "!*opus*");
  expect(rules.allows("openai", "gpt-5-mini")).toBe(true);
  expect(rules.allows("azure-openai", "gpt-5-mini")).toBe(false);
  expect(rules.allows("openai", "gpt-5-pro")).toBe(false);
  expect(rules.allows("anthropic", "claude-sonnet-5")).toBe(true);
  expect(rules.allows("aws-bedrock", "claude-opus-5")).toBe(false);
});

it("allows everything but the exclusions without an inclusion, and everything without rules", () => {
  expect(models("!o1-pro").allows("openai", "gpt-4o")).toBe(true);
  expect(models("!o1-pro").allows("openai", "o1-pro")).toBe(false);
  expect(models().allows("openai", "o1-pro")).toBe(true);
});

it("splits a rule at the first slash, because models of a router contain one", () => {
  const rules = models("openrouter/openai/*");
  expect(rules.allows("openrouter", "openai/gpt-4o")).toBe(true);
  expect(rules.allows("openrouter", "anthropic/claude")).toBe(false);
  expect(rules.allows("openai", "gpt-4o")).toBe(false);
});

it("knows when the model need not be known", () => {
  expect(models("openai/*").allowsAll("openai")).toBe(true);
  expect(models("openai/*", "!o1*").allowsAll("openai")).toBe(false);
  expect(models("openai/*", "!anthropic/opus").allowsAll("openai")).toBe(true);
  expect(models("openai/gpt*").allowsAll("openai")).toBe(false);
  expect(models().allowsAll("openai")).toBe(true);
});

it("covers rules that are written more narrowly", () => {
  expect(models("openai/*").covers(models("openai/gpt-5*"))).toBe(true);
  expect(models("openai/*").covers(models())).toBe(false);
  expect(models("openai/*").covers(models("!o1"))).toBe(false);
  expect(models("!*o1*").covers(models("openai/*"))).toBe(false);
  expect(models("!o1").covers(models("openai/*", "!o1*"))).toBe(true);
});

const name = fc.constantFrom("a", "b", "ab", "ba", "aa");
const part = fc.constantFrom("a", "b", "*", "a*", "*b", "a*b", "ab");
const rule = fc
  .tuple(fc.boolean(), part, fc.option(part))
  .map(([isExcluded, one, two]) => `${isExcluded ? "!" : ""}${two === null ? one : `${one}/${two}`}`);

it("covers only rules that allow no more", () => {
  fc.assert(
    fc.property(
      fc.array(rule, { maxLength: 4 }),
      fc.array(rule, { maxLength: 4 }),
      name,
      name,
      (outer, inner, provider, model) => {
        if (!models(...outer).covers(models(...inner))) return;
        if (models(...inner).allows(provider, model)) {
          expect(models(...outer).allows(provider, model)).toBe(true);
        }
        if (models(...inner).allowsAll(provider)) expect(models(...inner).allows(provider, model)).toBe(true);
      },
    ),
    { numRuns: 5000 },
  );
});
