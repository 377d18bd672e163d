import { expect, it } from "vitest";
import { continueTrace, toTraceparent } from "./trace-context.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";

it("continues a valid trace as a new span and keeps the sampling decision", () => {
  const context = continueTrace(`00-${TRACE}-${SPAN}-01`);
  expect(context).toMatchObject({ traceId: TRACE, parentSpanId: SPAN, isSampled: true });
  expect(context.spanId).not.toBe(SPAN);
  expect(toTraceparent(context)).toBe(`00-${TRACE}-${context.spanId}-01`);
});

it("accepts a later version with additional fields", () => {
  expect(continueTrace(`01-${TRACE}-${SPAN}-00-more`).traceId).toBe(TRACE);
});

it("starts a new trace if the header is missing or malformed", () => {
  for (const header of [
    undefined,
    "",
    "nonsense",
    `ff-${TRACE}-${SPAN}-01`,
    `00-${"0".repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${"0".repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01-more`,
  ]) {
    const context = continueTrace(header);
    expect(context.traceId).toMatch(/^[0-9a-f]{32}$/);
    expect([context.traceId === TRACE, context.parentSpanId]).toEqual([false, null]);
  }
});
