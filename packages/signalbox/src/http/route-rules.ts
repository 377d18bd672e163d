/** What must be true of a route before it is served, and what follows from how it is written. */
import type { ZodType } from "zod";
import type { Route } from "./route.ts";

const GATEWAY_PARAMETER = "{gateway_id}";

/** Throws for a route whose permission no account would be checked for: it would be open to every token. */
export function requireAccount({ method, path, access, accountOf }: Route): void {
  const isPermission = access !== "root" && access !== "authenticated";
  if (isPermission && accountOf === undefined && !path.includes("{account_id}")) {
    throw new Error(
      `${method} ${path} needs ${access}, but neither its path nor accountOf names the account`,
    );
  }
}

/** The query parameters a route takes; null when its handler checks them itself. */
export function knownParameters({ query, documents, parameters, accountOf }: Route): string[] | null {
  if (parameters === "handler") return null;
  const names = [...namesOf(query), ...namesOf(documents?.query), ...(parameters ?? [])];
  return [...new Set(accountOf === undefined ? names : [...names, "account_id"])];
}

/** What a token that is bound to a gateway may do with a route, for the description. */
export function gatewayBinding({ path, narrowsToGateway }: Route): string {
  if (path.includes(GATEWAY_PARAMETER)) return GATEWAY_PARAMETER;
  return narrowsToGateway === true ? "narrowed" : "refused";
}

function namesOf(schema: ZodType | undefined): string[] {
  if (schema === undefined) return [];
  const { shape } = schema as { shape?: object };
  if (shape === undefined) throw new Error("a query is described by an object of parameters");
  return Object.keys(shape);
}
