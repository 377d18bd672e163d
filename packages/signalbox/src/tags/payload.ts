/**
 * What clients send to the tags interface, taken apart with the contract's own errors: 1002 for a set, 1015 for a delete, 1003 for a
 * read, then 1006, 1011, 1014, 1012 in this order.
 *
 * A member that stands twice in a JSON object counts once, with its last value, as JSON parsers have it. Members of `tags` are read as
 * entries, never by name, so `__proto__` is a key like any other. Content types are not looked at: what parses is JSON.
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

/** Code points of an id: what fits into an index entry of every engine. */
const MAX_ID_LENGTH = 512;
const MAX_NAME_LENGTH = 1024;

/** The resource types of an installation: the built-in ones and those of its configuration. */
export type ConfiguredResourceType = string | { readonly name: string; readonly scope: "account" | "zone" };

export class ResourceTypes {
  readonly #byName: ReadonlyMap<string, TagResourceType>;

  /** A configured type with the name of a built-in one replaces it. */
  constructor(configured: readonly ConfiguredResourceType[]) {
    const added = configured.map((type): TagResourceType =>
      typeof type === "string" ? { name: type, scope: "account" } : type,
    );
    this.#byName = new Map([...TAG_RESOURCE_TYPES, ...added].map((type) => [type.name, type]));
  }

  /** Throws 1006 for an unknown type. A path below an account accepts every type, a path below a zone only types that belong to zones. */
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

/** The body as a JSON object, or the given error. */
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

/** What a read answers and a write does not look at. `type` and `id` name the resource where `resource_type` and `resource_id` do not. */
const READ_FIELDS = ["type", "id", "etag", "tags_updated_at", "zone_id"];
const NAMING_FIELDS = ["resource_type", "resource_id", "worker_id", "access_application_id"];
const KNOWN_FIELDS: ReadonlySet<string> = new Set([...NAMING_FIELDS, "tags", "name", ...READ_FIELDS]);
const KNOWN_ITEM_FIELDS: ReadonlySet<string> = new Set([...KNOWN_FIELDS, "operation", "if_match"]);

/** A misspelt member would otherwise name another resource, or be lost without a word. */
export function refuseUnknownFields(payload: JsonObject, error: ErrorName, isBulkItem = false): void {
  const known = isBulkItem ? KNOWN_ITEM_FIELDS : KNOWN_FIELDS;
  const unknown = Object.keys(payload).find((name) => !known.has(name));
  if (unknown !== undefined) {
    const { message } = ERROR_TABLE[error];
    throw new SignalboxError(error, { message: `${message}: unknown field ${JSON.stringify(unknown)}` });
  }
}

/**
 * A member of a body that names a resource: what a read answers may be sent back, and it calls the resource's type and id `type` and
 * `id`. Where both spellings are given they must agree.
 */
export function namingField(payload: JsonObject, name: string): unknown {
  const asRead = name === "resource_type" ? "type" : name === "resource_id" ? "id" : undefined;
  const given = payload[name];
  if (asRead === undefined) return given;
  const read = payload[asRead];
  if (given === undefined || read === undefined || given === read) return given ?? read;
  return undefined;
}

/** A set (PUT) or, with `mayRemove`, a merge (PATCH), in which null removes a key. */
export function parseTagsPayload(
  payload: JsonObject,
  types: ResourceTypes,
  zoneId: string,
  mayRemove: boolean,
  isBulkItem = false,
): TagsPayload {
  const error = "tags_invalid_set_payload";
  const fields = resourceFields((name) => namingField(payload, name), error);
  const entries = Object.entries(requireObject(payload["tags"], error));
  const values: string[] = [];
  for (const [, value] of entries) {
    if (mayRemove && value === null) continue;
    // A lone surrogate is no character: it could not be stored and read back as the same text.
    if (typeof value !== "string" || !value.isWellFormed()) throw new SignalboxError(error);
    values.push(value);
  }
  const name = payload["name"];
  if (name !== undefined && (!isStorable(name) || name === "" || isLongerThan(name, MAX_NAME_LENGTH))) {
    throw new SignalboxError(error);
  }
  refuseUnknownFields(payload, error, isBulkItem);
  // What was read below a zone is another resource elsewhere.
  if (payload["zone_id"] !== undefined && payload["zone_id"] !== zoneId) throw new SignalboxError(error);
  const resource = toResourceKey(fields, types, zoneId);
  checkTags(
    entries.map(([key]) => key),
    values,
  );
  return { resource, tags: new Map(entries as [string, string | null][]), name };
}

/** The resource named by a body, by query parameters, or by both together. */
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

/** Text that every engine can store in a text column: whole characters, and no NUL, which PostgreSQL refuses. */
function isStorable(value: unknown): value is string {
  return typeof value === "string" && value.isWellFormed() && !value.includes("\0");
}
