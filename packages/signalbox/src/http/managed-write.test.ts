import { expect, it } from "vitest";
import { describeRoute } from "./managed-write.ts";

it.each([
  ["POST", "create", "/accounts/{account_id}/tokens", "create", "tokens", ""],
  ["POST", "create", "/gateways/{gateway_id}/access", "create", "access", ""],
  ["POST", "action", "/tokens/{token_id}/rotate", "rotate", "tokens", "token_id"],
  // Words that look like collections.
  ["POST", "action", "/keys/{key_id}/reset-limits", "reset-limits", "keys", "key_id"],
  ["POST", "action", "/queues/process", "process", "queues", ""],
  ["PUT", undefined, "/tokens/{token_id}", "update", "tokens", "token_id"],
  ["DELETE", undefined, "/tokens/{token_id}", "delete", "tokens", "token_id"],
] as const)(
  "the audit log calls %s (%s) %s a %s of %s",
  (method, effect, path, action, resourceType, parameter) => {
    const route = effect === undefined ? { method, path } : { method, effect, path };
    expect(describeRoute(route)).toEqual({ action, resourceType, parameter, operation: `${method} ${path}` });
  },
);
