import { expect, it } from "vitest";
import { waterfallOf } from "./waterfall.ts";

const CALL = {
  provider: "openai",
  model: "gpt-4o",
  duration: 100,
  time_to_first_byte: 40,
  status_code: 200,
  success: true,
  cached: false,
};
const spans = (call: Parameters<typeof waterfallOf>[0]) =>
  waterfallOf(call).map(({ title, note, from, to }) => `${title} ${note} ${from}-${to}`);

it("splits a call with one attempt at the first byte", () => {
  expect(spans(CALL)).toEqual(["openai/gpt-4o 200 0-40", "Answer, first to last byte  40-100"]);
  expect(spans({ ...CALL, time_to_first_byte: null, status_code: 502, success: false })).toEqual([
    "openai/gpt-4o 502 0-100",
  ]);
  expect(spans({ ...CALL, cached: true })).toEqual(["Cache hit 0-100"]);
});

it("shows every attempt, and what the call waited for before the first", () => {
  const attempt = { provider: "openai", model: "gpt-4o", step: 0, start: 5, duration: 20, status: 429 };
  const attempts = JSON.stringify([
    { ...attempt, outcome: "failed", failure: "status" },
    { ...attempt, start: 26, duration: 4, status: null, outcome: "failed", failure: "timeout" },
    { ...attempt, provider: "mistral", model: "small", step: 1, start: 30, status: 200, outcome: "answered" },
  ]);
  expect(spans({ ...CALL, attempts })).toEqual([
    "Gateway: token, limits, cache  0-5",
    "openai/gpt-4o 429 5-25",
    "openai/gpt-4o timeout 26-30",
    "Fallback 1: mistral/small 200 30-40",
    "Answer, first to last byte  40-100",
  ]);
  expect(spans({ ...CALL, attempts: "not json" })).toHaveLength(2);
});
