import { describe, expect, it } from "vitest";
import type { Step } from "../step/step.ts";
import { assumedToolCost, offeredTools, uncountedSearches } from "./requested-tools.ts";
import { NO_USAGE } from "../../engines/relay/index.ts";

const offered = (...tools: object[]) => offeredTools(Buffer.from(JSON.stringify({ tools })));

describe("tools of the provider that a request offers", () => {
  it("are searches, with the limit that the request sets", () => {
    expect(offered({ type: "web_search" }, { type: "file_search" })).toEqual({
      searches: 5,
      fileSearches: 5,
    });
    expect(offered({ type: "web_search_20250305", max_uses: 2 })).toEqual({ searches: 2 });
    expect(offered({ googleSearch: {} })).toEqual({ searches: 5 });
  });

  it("are containers for code of the largest size that the request names", () => {
    const sessions = (container: unknown) => offered({ type: "code_interpreter", container }).tools?.sessions;
    expect(sessions({ type: "auto" })).toBe(1);
    expect(sessions({ type: "auto", memory_limit: "16g" })).toBe(16);
    expect(sessions({ type: "auto", memory_limit: "much" })).toBe(64);
    expect(sessions("cntr_1")).toBe(1);
    expect(offered({ type: "code_execution_20250825" }).tools?.sessions).toBe(1);
  });

  it("are pictures of the model, quality and size that the tool names", () => {
    const round = (tool: object) => offered({ type: "image_generation", ...tool }).tools?.rounds[0];
    expect(round({})).toMatchObject({ model: "gpt-image-1", usage: { tokensOut: 6240 } });
    expect(round({ model: "gpt-image-1-mini", quality: "low", size: "1024x1024" })).toMatchObject({
      model: "gpt-image-1-mini",
      usage: { tokensOut: 272 },
    });
    expect(round({ input_image_mask: { file_id: "a" } })).toMatchObject({ model: "gpt-image-1" });
  });

  it("are maps", () => {
    expect(offered({ googleMaps: {} }).tools?.maps).toBe(1);
    expect(offered({ google_maps: {} }).tools?.maps).toBe(1);
  });

  it("are none in other requests", () => {
    expect(offered({ type: "function", name: "code_interpreter" })).toEqual({});
    expect(offeredTools(Buffer.from('{"input":"perhaps a shell"}'))).toEqual({});
  });
});

it("a chat completion of a model for searches has one search that its answer does not count", () => {
  const step = (model: string, slug = "openai", requestType = "chat") =>
    uncountedSearches({ model, provider: { slug }, requestType } as Step);
  expect(step("gpt-4o-search-preview")).toBe(1);
  expect(step("gpt-5-search-api-2025-10-14")).toBe(1);
  expect(step("gpt-4o")).toBe(0);
  expect(step("gpt-4o-search-preview", "groq")).toBe(0);
  expect(step("gpt-4o-search-preview", "openai", "responses")).toBe(0);
});

it("assumes a price for what a tool without a known price did", () => {
  const none = { sessions: 0, maps: 0, rounds: [], isUnpriced: false };
  expect(assumedToolCost(NO_USAGE)).toBeNull();
  expect(assumedToolCost({ ...NO_USAGE, searches: 2 })).toBeCloseTo(0.07, 9);
  expect(assumedToolCost({ ...NO_USAGE, tools: { ...none, isUnpriced: true } })).toBeCloseTo(0.12, 9);
  const usage = { ...NO_USAGE, tokensOut: 1000 };
  expect(assumedToolCost({ ...NO_USAGE, tools: { ...none, rounds: [{ model: "a", usage }] } })).toBeCloseTo(
    0.04,
    9,
  );
});
