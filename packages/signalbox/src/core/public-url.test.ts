import { expect, it } from "vitest";
import { publicUrl } from "./public-url.ts";

it("is the configured address, whatever a request says", () => {
  const headers = { host: "10.0.0.5:8787", "x-forwarded-proto": "http" };
  expect(publicUrl(headers, "https://ai.example.com/")).toBe("https://ai.example.com");
  expect(publicUrl(headers, "https://example.com/ai")).toBe("https://example.com/ai");
});

it("is the request's host, with the scheme that the outermost proxy was spoken to", () => {
  expect(publicUrl({ host: "127.0.0.1:8787" }, undefined)).toBe("http://127.0.0.1:8787");
  expect(publicUrl({ host: "ai.example.com", "x-forwarded-proto": "https" }, undefined)).toBe(
    "https://ai.example.com",
  );
  expect(publicUrl({ host: "[::1]:8787", "x-forwarded-proto": "https, http" }, undefined)).toBe(
    "https://[::1]:8787",
  );
  expect(publicUrl({ host: "a", "x-forwarded-proto": "http,https" }, undefined)).toBe("http://a");
});

it.each(["", "a b", "evil.example/x?", "user@evil.example", "a'b", "a;b", "a:99999999", "[not-v6]", "a\\b"])(
  "does not repeat %j as a host",
  (host) => {
    expect(publicUrl({ host }, undefined)).toBe("http://127.0.0.1");
  },
);
