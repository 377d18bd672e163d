import type { Permission } from "@signalbox/protocol";
import { expect, it } from "vitest";
import { isAllowed, type Principal } from "./principal.ts";
import { requireWithinBounds } from "./token-bounds.ts";

const principal = (permissions: readonly Permission[], gatewayId: string | null): Principal => ({
  kind: "token",
  token: {
    id: "t",
    accountId: "a",
    name: "",
    hash: "",
    suffix: "",
    permissions: new Set(permissions),
    gatewayId,
    createdAt: 0,
    expiresAt: null,
    isDisabled: false,
    previous: null,
    policy: null,
  },
});

it("ignores stored permissions of a bound token that do not apply to gateways", () => {
  const old = principal(["gateway.run", "agents.edit", "tags.edit"], "g");
  expect(isAllowed(old, "a", "gateway.run")).toBe(true);
  expect(isAllowed(old, "a", "agents.edit")).toBe(false);
  expect(isAllowed(old, "a", "tags.edit")).toBe(false);
  expect(isAllowed(principal(["agents.edit"], null), "a", "agents.edit")).toBe(true);
  expect(isAllowed(principal(["agents.edit"], null), "b", "agents.edit")).toBe(false);
});

it("refuses a token for another account, except by the root token", () => {
  const wanted = { accountId: "b", permissions: [], gatewayId: null, expiresAt: null, policy: null };
  expect(() => requireWithinBounds(principal(["tokens.edit"], null), wanted)).toThrow("Permission denied");
  expect(() => requireWithinBounds({ kind: "root" }, wanted)).not.toThrow();
});
