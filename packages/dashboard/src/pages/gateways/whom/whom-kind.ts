/** Users and sessions are values of the metadata of calls: how each is grouped, filtered and addressed. */
import type { Usage } from "../analytics/usage.ts";

export interface WhomKind {
  readonly kind: "user" | "session";
  /** The key of the metadata. */
  readonly key: string;
}

/** The group of the usage API. */
export function groupOf({ kind, key }: WhomKind): string {
  return kind === "user" ? "user" : `metadata:${key}`;
}

/** The value of a row that is grouped so; null for calls without one. */
export function valueOf({ kind, key }: WhomKind, row: Usage): string | null {
  return (kind === "user" ? row.user : row.metadata?.[key]) ?? null;
}

/** The address of the page of one user or session, below the account. */
export function addressOf(
  page: (...parts: string[]) => string,
  { kind, key }: WhomKind,
  value: string,
): string {
  return kind === "user" ? page("users", value) : `${page("sessions", value)}?key=${encodeURIComponent(key)}`;
}
