/**
 * Parses the requests of the tags interface. The errors and their order are part of the contract: 1002 for a set, 1015 for a deletion or 1003
 * for a read, then 1006, 1011, 1014, 1012.
 *
 * If a JSON object has a member twice, the last one counts, as in `JSON.parse`. Members of `tags` are read as entries, never by name, so
 * `__proto__` is an ordinary key. The content type is ignored.
 */
import {
  checkTags,
  ERROR_TABLE,
  type ErrorName,
  isLongerThan,
  SignalboxError,
  TAG_RESOURCE_TYPES,
  type TagResourceType,
} from "@signalbox/protocol";
import type { ResourceKey } from "./store/resource-row.ts";

/** Code points of an id; the id must fit into an index entry of PostgreSQL. */
const MAX_ID_LENGTH = 512;
const MAX_NAME_LENGTH = 1024;

/** A type in the configuration; a string is the name of an account's type. */
export type ConfiguredResourceType = string | { readonly name: string; readonly scope: "account" | "zone" };

/** The built-in and the configured resource types. */
export class ResourceTypes {
  readonly #byName: ReadonlyMap<string, TagResourceType>;

  /** A configured type with the name of a built-in one replaces it. */
  constructor(configured: readonly ConfiguredResourceType[]) {
    const added = configured.map((type): TagResourceType =>
      typeof type === "string" ? { name: type, scope: "account" } : type,
    );
    this.#byName = new Map([...TAG_RESOURCE_TYPES, ...added].map((type) => [type.name, type]));
  }

  /** Throws 1006 for an unknown type. Paths below an account accept every type, paths below a zone only zone types. */
  require(name: string, isInZone: boolean): TagResourceType {
    const type = this.#byName.get(name);
    if (type === undefined || (isInZone && type.scope !== "zone")) {
      throw new SignalboxError("tags_invalid_resource_type");
    }
    return type;
  }
}

export interface TagsPayload {
  readonly resource: ResourceKey;
  readonly tags: ReadonlyMap<string, string | null>;
  readonly name: string | undefined;
}

export type JsonObject = Readonly<Record<string, unknown>>;

/** Parses a JSON object; throws `error` for anything else. */
export function parseObject(body: Buffer, error: ErrorName): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw new SignalboxError(error);
  }
  return requireObject(value, error);
}

export function requireObject(value: unknown, error: ErrorName): JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new SignalboxError(error);
  return value as JsonObject;
}

/** Members of the response to a read, which a client may send back. `type` and `id` are aliases of `resource_type` and `resource_id`. */
const READ_FIELDS = ["type", "id", "etag", "tags_updated_at", "zone_id"];
const IDENTITY_FIELDS = ["resource_type", "resource_id", "worker_id", "access_application_id"];
const KNOWN_FIELDS: ReadonlySet<string> = new Set([...IDENTITY_FIELDS, "tags", "name", ...READ_FIELDS]);
const KNOWN_ITEM_FIELDS: ReadonlySet<string> = new Set([...KNOWN_FIELDS, "operation", "if_match"]);

/** Throws `error` for an unknown member: a misspelled one could identify another resource or be ignored silently. */
export function requireKnownFields(payload: JsonObject, error: ErrorName, isBulkItem = false): void {
  const known = isBulkItem ? KNOWN_ITEM_FIELDS : KNOWN_FIELDS;
  const unknown = Object.keys(payload).find((name) => !known.has(name));
  if (unknown !== undefined) {
    const { message } = ERROR_TABLE[error];
    throw new SignalboxError(error, { message: `${message}: unknown field ${JSON.stringify(unknown)}` });
  }
}

/** A member that identifies the resource, also under its alias. Undefined if both are present and differ. */
export function identityField(payload: JsonObject, name: string): unknown {
  const alias = name === "resource_type" ? "type" : name === "resource_id" ? "id" : undefined;
  const given = payload[name];
  if (alias === undefined) return given;
  const aliased = payload[alias];
  if (given === undefined || aliased === undefined || given === aliased) return given ?? aliased;
  return undefined;
}

export interface TagsPayloadContext {
  /** Empty for a path below an account. */
  readonly zoneId: string;
  /** True for a merge, in which null removes a key. */
  readonly mayRemove: boolean;
  readonly isBulkItem: boolean;
}

/** Parses the body of a set (PUT) or of a merge (PATCH), or an item of a bulk request. */
export function parseTagsPayload(
  payload: JsonObject,
  types: ResourceTypes,
  { zoneId, mayRemove, isBulkItem }: TagsPayloadContext,
): TagsPayload {
  const error = "tags_invalid_set_payload";
  const fields = resourceFields((name) => identityField(payload, name), error);
  const entries = Object.entries(requireObject(payload["tags"], error));
  const values: string[] = [];
  for (const [, value] of entries) {
    if (mayRemove && value === null) continue;
    // A lone surrogate cannot be encoded in UTF-8.
    if (typeof value !== "string" || !value.isWellFormed()) throw new SignalboxError(error);
    values.push(value);
  }
  const name = payload["name"];
  if (name !== undefined && (!isStorable(name) || name === "" || isLongerThan(name, MAX_NAME_LENGTH))) {
    throw new SignalboxError(error);
  }
  requireKnownFields(payload, error, isBulkItem);
  // The response to a read below a zone identifies another resource below another zone or an account.
  if (payload["zone_id"] !== undefined && payload["zone_id"] !== zoneId) throw new SignalboxError(error);
  const resource = toResourceKey(fields, types, zoneId);
  checkTags(
    entries.map(([key]) => key),
    values,
  );
  return { resource, tags: new Map(entries as [string, string | null][]), name };
}

/** Parses the identity of a resource from a body or from query parameters. */
export function parseResource(
  field: (name: string) => unknown,
  types: ResourceTypes,
  zoneId: string,
  error: ErrorName,
): ResourceKey {
  return toResourceKey(resourceFields(field, error), types, zoneId);
}

interface ResourceFields {
  readonly type: string;
  readonly id: string;
  readonly field: (name: string) => unknown;
  readonly error: ErrorName;
}

function resourceFields(field: (name: string) => unknown, error: ErrorName): ResourceFields {
  const type = field("resource_type");
  const id = field("resource_id");
  if (typeof type !== "string" || type === "" || !isId(id)) throw new SignalboxError(error);
  return { type, id, field, error };
}

function toResourceKey(fields: ResourceFields, types: ResourceTypes, zoneId: string): ResourceKey {
  const type = types.require(fields.type, zoneId !== "");
  return { type: type.name, id: fields.id, zoneId, parentId: parentOf(fields, type.parent) };
}

function parentOf(fields: ResourceFields, name: string | undefined): string {
  const parent = name === undefined ? undefined : fields.field(name);
  if (parent === undefined || parent === null) return "";
  if (!isId(parent)) throw new SignalboxError(fields.error);
  return parent;
}

function isId(value: unknown): value is string {
  return isStorable(value) && value !== "" && !isLongerThan(value, MAX_ID_LENGTH);
}

/** True for text that both databases can store: no lone surrogate, and no NUL, which PostgreSQL rejects. */
function isStorable(value: unknown): value is string {
  return typeof value === "string" && value.isWellFormed() && !value.includes("\0");
}
