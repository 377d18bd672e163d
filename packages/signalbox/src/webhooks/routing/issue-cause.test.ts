import { expect, it } from "vitest";
import { causeOf } from "./issue-cause.ts";

it.each([
  ["the receiver answered 503", "the receiver answered 503"],
  ["order 4711 of 12.50 EUR is unknown", "order … of … EUR is unknown"],
  ["no such customer: 7b5bd21c-5c0f-4a6e-9f66-04c2f0f2a001", "no such customer: …"],
  ["event 01M7PQMXQM0W4JTRB29B76P6DH: refused", "event …: refused"],
  ['"Anna" is not allowed', "… is not allowed"],
  ["first line\nsecond line", "first line"],
  [null, "unknown"],
])("%j has the cause %j", (reason, cause) => {
  expect(causeOf(reason)).toBe(cause);
});
