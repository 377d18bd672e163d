import { expect, it } from "vitest";
import { z } from "zod";
import type { Accounts, Authenticator } from "../accounts/index.ts";
import type { AuditTrail } from "../contracts/audit-trail.ts";
import { createManagement } from "./management.ts";
import { SharedPlaces } from "../core/shared-pool.ts";
import type { Route } from "./route.ts";
import { alwaysServedPaths, gatewayBinding, knownParameters } from "./route-rules.ts";

const route = (rest: Partial<Route>): Route => ({
  method: "GET",
  path: "/accounts/{account_id}/things",
  access: "tags.read",
  summary: "Things.",
  handler: () => ({}),
  ...rest,
});
const serve = (one: Route) =>
  createManagement({
    routes: [one],
    authenticator: {} as Authenticator,
    accounts: {} as Accounts,
    places: new SharedPlaces(1),
    audit: {} as AuditTrail,
    onWrongCredential: () => undefined,
    trafficOrigin: () => "",
    maxBodyBytes: 1,
  });

it("refuses to start with a route that has a permission but no account", () => {
  expect(() => serve(route({ path: "/things" }))).toThrow("GET /things requires tags.read");
  expect(() => serve(route({ path: "/things", accountOf: () => "default" }))).not.toThrow();
  expect(() => serve(route({ path: "/things", access: "root" }))).not.toThrow();
  expect(() => serve(route({}))).not.toThrow();
});

it("a route that is always served is so below /client/v4, too, and has a path without parameters", () => {
  const status = route({ path: "/status", access: "root", isAlwaysServed: true });
  expect([...alwaysServedPaths([status, route({})])]).toEqual(["/status", "/client/v4/status"]);
  expect(() => serve(route({ isAlwaysServed: true }))).toThrow("is always served, but has parameters");
});

it("a route has exactly the query parameters of its schemas and its list", () => {
  expect(knownParameters(route({}))).toEqual([]);
  expect(knownParameters(route({ query: z.object({ a: z.string() }), parameters: ["tag"] }))).toEqual([
    "a",
    "tag",
  ]);
  expect(knownParameters(route({ documents: { query: z.object({ b: z.string() }) } }))).toEqual(["b"]);
  expect(knownParameters(route({ accountOf: () => "default" }))).toEqual(["account_id"]);
  expect(knownParameters(route({ parameters: "handler" }))).toBeNull();
  expect(() => knownParameters(route({ query: z.string() }))).toThrow("must be an object");
});

it("a route without {gateway_id} is closed to bound tokens by default", () => {
  expect(gatewayBinding(route({}))).toBe("refused");
  expect(gatewayBinding(route({ narrowsToGateway: true }))).toBe("narrowed");
  expect(gatewayBinding(route({ path: "/accounts/{account_id}/g/{gateway_id}/x" }))).toBe("{gateway_id}");
});
