import { expect, it } from "vitest";
import { ClientAddress } from "./client-address.ts";

const address = new ClientAddress(["10.0.0.0/8", "::1", "fd00::/8"]);

it.each([
  ["a caller that is no trusted proxy states nothing", "192.0.2.1", "203.0.113.7", "192.0.2.1"],
  ["a trusted proxy states its caller", "10.1.2.3", "203.0.113.7", "203.0.113.7"],
  ["what the client claims before it does not count", "10.1.2.3", "6.6.6.6, 203.0.113.7", "203.0.113.7"],
  ["trusted proxies in a row are passed over", "10.1.2.3", "203.0.113.7, 10.9.9.9", "203.0.113.7"],
  ["ports are removed", "::1", "203.0.113.7:5123", "203.0.113.7"],
  ["IPv6", "::1", "[2001:db8::7]:443", "2001:db8::7"],
  ["an IPv4 address as IPv6", "fd00::1", "::ffff:203.0.113.7", "203.0.113.7"],
  ["only proxies", "10.1.2.3", "10.0.0.1", "10.0.0.1"],
  ["no address", "10.1.2.3", "unknown", "10.1.2.3"],
  ["an obfuscated hop ends the search", "10.1.2.3", "203.0.113.7, _hidden, 10.0.0.9", "10.0.0.9"],
])("%s", (_, peer, forwardedFor, expected) => {
  expect(address.of(peer, forwardedFor)).toBe(expected);
});

it("a call from inside the process has no address", () => {
  expect(address.of(null, "203.0.113.7")).toBeNull();
});
