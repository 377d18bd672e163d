/** Groups of usage by whom. */
import type { Usage } from "./usage.ts";

export const WHOM_GROUPS: Readonly<Record<string, string>> = {
  token: "Token",
  owner: "Owner of the token",
  user: "User (metadata)",
  metadata: "Metadata key",
  token_tag: "Tag of the token",
};

/** The value of a row; null for calls without one. */
export function labelOf(row: Usage, group: string, key: string): string | null {
  switch (group) {
    case "token":
      return row.token_name ?? row.token_id ?? null;
    case "owner":
      return row.owner ?? null;
    case "user":
      return row.user ?? null;
    case "token_tag":
      return row.token_tags?.[key] ?? null;
    default:
      return row.metadata?.[key] ?? null;
  }
}
