import { expect, it } from "vitest";
import { dearerTier, tierFactor, tierInHeaders } from "./price-tiers.ts";

it("reads the tier in headers of Bedrock", () => {
  const latency = ["X-Amzn-Bedrock-PerformanceConfig-Latency", "optimized"];
  expect(tierInHeaders(["X-Amzn-Bedrock-Service-Tier", "priority"])).toBe("priority");
  expect(tierInHeaders(["x-amzn-bedrock-service-tier", "default", ...latency])).toBe("latency:optimized");
  expect(tierInHeaders(["content-type", "priority"])).toBe("");
});

it.each(["openai", "groq", "deepseek", "aws-bedrock", "custom-mine"])(
  "reserves the most for a tier of %s that is not known, and takes nothing off for a cheaper one",
  (provider) => {
    expect(tierFactor(provider, "m", dearerTier("a-tier-of-tomorrow"))).toBe(6);
    expect(tierFactor(provider, "m", dearerTier("flex"))).toBe(1);
    expect(tierFactor(provider, "m", "")).toBe(1);
  },
);
