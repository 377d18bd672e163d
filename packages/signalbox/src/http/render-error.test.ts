import { SignalboxError } from "@signalbox/protocol";
import { describe, expect, it } from "vitest";
import { type ErrorDialect, renderError } from "./render-error.ts";

function refusal(seconds: string, dialect: ErrorDialect) {
  const error = new SignalboxError("gateway_spend_limit", { headers: { "retry-after": seconds } });
  const { headers, body } = renderError(error, dialect, "id");
  return { wait: headers["retry-after"], shouldRetry: headers["x-should-retry"], body };
}

describe("the time to wait", () => {
  it.each(["openai", "anthropic", "gemini"] as const)(
    "is sent to SDKs of %s if it is a minute at most; beyond it the call is not to be repeated",
    (dialect) => {
      expect(refusal("60", dialect)).toMatchObject({ wait: "60", shouldRetry: undefined });
      expect(refusal("61", dialect)).toMatchObject({ wait: undefined, shouldRetry: "false" });
    },
  );

  it("of a rate limit is sent to everybody", () => {
    const error = new SignalboxError("gateway_rate_limited", { headers: { "retry-after": "900" } });
    const { headers } = renderError(error, "openai", "id");
    expect(headers).toMatchObject({ "retry-after": "900", "x-should-retry": "false" });
  });

  it.each(["gateway", "run", "envelope"] as const)("is sent whole in the format %s", (dialect) => {
    expect(refusal("900000", dialect)).toMatchObject({ wait: "900000", shouldRetry: undefined });
  });

  it("is in the details of an error for Google's clients, however long it is", () => {
    const { error } = JSON.parse(refusal("900000", "gemini").body) as { error: { details: object[] } };
    expect(error.details).toContainEqual({
      "@type": "type.googleapis.com/google.rpc.RetryInfo",
      retryDelay: "900000s",
    });
  });
});

it("tells SDKs not to repeat a call whose token was refused", () => {
  const error = new SignalboxError("gateway_unauthorized");
  expect(renderError(error, "anthropic", "id").headers["x-should-retry"]).toBe("false");
  expect(renderError(error, "gateway", "id").headers["x-should-retry"]).toBeUndefined();
});
