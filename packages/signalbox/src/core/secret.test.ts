import { inspect } from "node:util";
import { expect, it } from "vitest";
import { Secret } from "./secret.ts";

it("prints, serialises and inspects as [secret]", () => {
  const secret = new Secret("hunter2");
  expect(
    `${String(secret)} ${JSON.stringify({ secret })} ${inspect({ secret })} ${JSON.stringify(Object.entries(secret))}`,
  ).not.toContain("hunter2");
  expect(secret.reveal()).toBe("hunter2");
});

it("compares by content, also with different lengths", () => {
  const secret = new Secret("hunter2");
  expect([secret.equals("hunter2"), secret.equals("hunter"), secret.equals("")]).toEqual([
    true,
    false,
    false,
  ]);
});
