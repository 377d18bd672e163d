/** Groups and filters of usage by whom: `token`, `owner`, `user`, `metadata:<key>`, `token_tag:<key>`. */
import { invalidRequest } from "../../core/invalid-request.ts";
import { RESERVED_METADATA_PREFIX } from "../../accounts/index.ts";
import type { UsageDimension } from "../../engines/call-log/index.ts";

export interface NamedDimension {
  /** As in `group_by`, and the member of the result. */
  readonly name: string;
  readonly dimension: UsageDimension;
}

const MAX_DIMENSIONS = 3;
const MAX_KEY = 256;
/** Fixed names for metadata that virtual keys and most applications use. */
const METADATA_NAMES: Readonly<Record<string, string>> = {
  owner: `${RESERVED_METADATA_PREFIX}owner`,
  user: "user",
};
const METADATA = "metadata:";
const TOKEN_TAG = "token_tag:";

export const DIMENSION_NAMES = "token, owner, user, metadata:<key>, token_tag:<key>";

/** Returns the dimension of a group; null for any other group. */
export function parseDimension(name: string): NamedDimension | null {
  if (name === "token") return { name, dimension: { kind: "token" } };
  const key = metadataKey(name);
  return key === null ? null : { name, dimension: { kind: "metadata", key: requireKey(key, name) } };
}

export function requireFewDimensions(dimensions: readonly NamedDimension[]): void {
  if (dimensions.length > MAX_DIMENSIONS) {
    throw invalidRequest(`group_by: at most ${MAX_DIMENSIONS} of ${DIMENSION_NAMES}`);
  }
}

/** Parses `owner=ada`, `metadata:team=search`; an empty value selects calls without one. */
export function parseOnly(text: string): { dimension: UsageDimension; value: string | null } {
  const equals = text.indexOf("=");
  const named = equals === -1 ? null : parseDimension(text.slice(0, equals));
  if (named === null) {
    throw invalidRequest(
      `only: expected <group>=<value> with one of ${DIMENSION_NAMES}, found ${JSON.stringify(text)}`,
    );
  }
  const value = text.slice(equals + 1);
  return { dimension: named.dimension, value: value === "" ? null : value };
}

function metadataKey(name: string): string | null {
  if (Object.hasOwn(METADATA_NAMES, name)) return METADATA_NAMES[name] ?? null;
  if (name.startsWith(METADATA)) return name.slice(METADATA.length);
  if (name.startsWith(TOKEN_TAG)) return `${RESERVED_METADATA_PREFIX}tags.${name.slice(TOKEN_TAG.length)}`;
  return null;
}

/** The key becomes part of a JSON path, which has no escape for these characters. */
function requireKey(key: string, name: string): string {
  if (key === "" || key.endsWith(".tags.")) throw invalidRequest(`group_by: ${name} needs a key`);
  if (key.length > MAX_KEY || /["\\\p{Cc}]/u.test(key)) {
    throw invalidRequest(`group_by: a key has at most ${MAX_KEY} characters, without quotes and backslashes`);
  }
  return key;
}
