/** Checks and derived properties of routes. */
import { toJSONSchema, z, type ZodType } from "zod";
import type { Route } from "./route.ts";

const GATEWAY_PARAMETER = "{gateway_id}";

/** Throws for a route with a permission but without an account: tokens of all accounts would have access. */
export function requireAccount({ method, path, access, accountOf }: Route): void {
  const isPermission = access !== "root" && access !== "authenticated";
  if (isPermission && accountOf === undefined && !path.includes("{account_id}")) {
    throw new Error(`${method} ${path} requires ${access}, but has neither {account_id} nor accountOf`);
  }
}

/** Returns the paths of the routes that are always served, as they are requested. */
export function alwaysServedPaths(routes: readonly Route[]): ReadonlySet<string> {
  const paths = routes.filter(({ isAlwaysServed }) => isAlwaysServed === true).map(({ path }) => path);
  const withParameter = paths.find((path) => path.includes("{"));
  if (withParameter !== undefined) throw new Error(`${withParameter} is always served, but has parameters`);
  return new Set(paths.flatMap((path) => [path, `/client/v4${path}`]));
}

/** Returns the query parameters of a route; null if its handler checks them. */
export function knownParameters({ query, documents, parameters, accountOf }: Route): string[] | null {
  if (parameters === "handler") return null;
  const names = [...namesOf(query), ...namesOf(documents?.query), ...(parameters ?? [])];
  return [...new Set(accountOf === undefined ? names : [...names, "account_id"])];
}

/** Returns the parameters that may stand only once. With `parameters: "handler"`, those of the schema. */
export function singleParameters(route: Route): ReadonlySet<string> {
  const { query, documents, repeatable = [] } = route;
  const lists = [...listsOf(query), ...listsOf(documents?.query), ...repeatable];
  const names = knownParameters(route) ?? namesOf(query);
  return new Set(names.filter((name) => !lists.includes(name)));
}

/** Returns the access of tokens that are bound to a gateway, for the OpenAPI description. */
export function gatewayBinding({ path, narrowsToGateway }: Route): string {
  if (path.includes(GATEWAY_PARAMETER)) return GATEWAY_PARAMETER;
  return narrowsToGateway === true ? "narrowed" : "refused";
}

function listsOf(schema: ZodType | undefined): string[] {
  const { shape = {} } = (schema ?? {}) as { shape?: Record<string, ZodType> };
  return Object.keys(shape).filter((name) => {
    const { type, anyOf } = toJSONSchema(shape[name] ?? z.never(), { io: "input", unrepresentable: "any" });
    return type === "array" || (anyOf?.some((one) => one.type === "array") ?? false);
  });
}

function namesOf(schema: ZodType | undefined): string[] {
  if (schema === undefined) return [];
  const { shape } = schema as { shape?: object };
  if (shape === undefined) throw new Error("the schema of a query must be an object");
  return Object.keys(shape);
}
