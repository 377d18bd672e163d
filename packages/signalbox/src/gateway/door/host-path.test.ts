import { describe, expect, it } from "vitest";
import { createHostPaths } from "./host-path.ts";

describe("the path of a host that stands for a gateway", () => {
  const place = createHostPaths({ "ai.example.com": "acme/main" });

  it("is below the gateway, whatever it is", () => {
    for (const [path, placed] of [
      ["/", "/v1/acme/main"],
      ["/openai/chat/completions", "/v1/acme/main/openai/chat/completions"],
      ["/compat/models", "/v1/acme/main/compat/models"],
      ["/v1/messages", "/v1/acme/main/compat/v1/messages"],
      ["/v1beta/models/gemini:generateContent", "/v1/acme/main/compat/v1beta/models/gemini:generateContent"],
      ["/v1/other/gateway/openai/x", "/v1/acme/main/compat/v1/other/gateway/openai/x"],
      ["/accounts/acme/tokens", "/v1/acme/main/accounts/acme/tokens"],
      ["/v%31/other/gateway/openai/x", "/v1/acme/main/v%31/other/gateway/openai/x"],
    ] as const) {
      expect(place?.("ai.example.com", path)).toBe(placed);
    }
  });

  it("is found by the name in any spelling, with and without a port", () => {
    for (const host of ["AI.example.com", "ai.example.com:8443", "ai.example.com.", "Ai.Example.Com.:80"]) {
      expect(place?.(host, "/x")).toBe("/v1/acme/main/x");
    }
  });

  it("is unchanged at other hosts", () => {
    expect(place?.("example.com", "/x")).toBeNull();
    expect(place?.("ai.example.com.evil.example", "/x")).toBeNull();
    expect(createHostPaths({})).toBeNull();
  });
});
