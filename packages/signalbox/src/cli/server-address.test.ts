import { expect, it } from "vitest";
import { toServerUrl } from "./server-address.ts";

it.each([
  ["127.0.0.1:8787", "http://127.0.0.1:8787"],
  ["localhost:8787", "http://localhost:8787"],
  ["[::1]:8787", "http://[::1]:8787"],
  ["box:8787/", "http://box:8787"],
  ["192.168.1.7", "http://192.168.1.7"],
  ["ai.example.com", "https://ai.example.com"],
  ["ai.example.com:8443/base/", "https://ai.example.com:8443/base"],
  ["8.8.8.8:8787", "https://8.8.8.8:8787"],
  ["http://ai.example.com", "http://ai.example.com"],
])("%s is %s", (text, url) => {
  expect(toServerUrl(text, "--url")).toBe(url);
});

it.each(["", "ftp://x", "http://", "http://a b", "127.0.0.1:99999"])(
  "%j is refused with the origin",
  (text) => {
    expect(() => toServerUrl(text, "SIGNALBOX_URL")).toThrow(/^SIGNALBOX_URL: expected /);
  },
);
