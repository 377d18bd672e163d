import { expect, it } from "vitest";
import { isLoopback, urlOf } from "./listen-address.ts";

const bound = (address: string, host = address) => ({ host, address, port: 80 });

it("recognises addresses that only this machine can reach", () => {
  for (const address of ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
    expect([address, isLoopback(bound(address))]).toEqual([address, true]);
  for (const address of ["0.0.0.0", "::", "192.168.1.5", "::ffff:10.0.0.1", "fe80::1", "::ffff:0.0.0.0"])
    expect([address, isLoopback(bound(address))]).toEqual([address, false]);
  expect(isLoopback(bound("127.0.0.1", "localhost"))).toBe(true);
  expect(isLoopback(bound("192.168.1.5", "box.example.com"))).toBe(false);
});

it("returns a URL that can be opened", () => {
  expect(urlOf(bound("127.0.0.1"))).toBe("http://127.0.0.1:80");
  expect(urlOf(bound("0.0.0.0"))).toBe("http://127.0.0.1:80");
  expect(urlOf(bound("::"))).toBe("http://[::1]:80");
  expect(urlOf(bound("::1"))).toBe("http://[::1]:80");
  expect(urlOf(bound("::ffff:127.0.0.1"))).toBe("http://[::ffff:127.0.0.1]:80");
  expect(urlOf(bound("10.0.0.1", "box.local"))).toBe("http://box.local:80");
});
