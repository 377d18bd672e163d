/** One resource's tags: read, set, merge, delete; below an account and below a zone. */
import { isIdentifier, SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { principalName } from "../accounts/index.ts";
import type { Principal } from "../accounts/principal.ts";
import { defineRoute, type Reply, type Route, type RouteRequest } from "../http/route.ts";
import { EMPTY_ETAG, parseIfMatch } from "./store/tag-write.ts";
import {
  type JsonObject,
  namingField,
  parseObject,
  parseResource,
  parseTagsPayload,
  refuseUnknownFields,
} from "./payload.ts";
import type { ResourceTypes } from "./payload.ts";
import { resourceResult, resourceText, untaggedJson } from "./show-resource.ts";
import type { ResourceText } from "./store/resource-cache.ts";
import type { ResourceKey } from "./store/resource-row.ts";
import type { TagReader } from "./store/tag-reader.ts";
import type { TagWrite, WriteOutcome } from "./store/tag-write.ts";
import type { TagWriter } from "./store/tag-writer.ts";

export interface ResourceRoutesParts {
  readonly reader: TagReader;
  readonly writer: TagWriter;
  readonly types: ResourceTypes;
  /** Status of a read of a resource without a record. */
  readonly missing: number;
  readonly maxTagsPerResource: number;
}

/** The account of zones for the root token, which has none of its own, unless `account_id` names another. */
const ROOT_ACCOUNT_OF_ZONES = "default";

const named = z.object({
  resource_type: z.string(),
  resource_id: z.string(),
  worker_id: z.string().optional(),
  access_application_id: z.string().optional(),
});
const set = named.extend({ tags: z.record(z.string(), z.string()), name: z.string().optional() });
const merge = set.extend({ tags: z.record(z.string(), z.string().nullable()) });

export function resourceRoutes(parts: ResourceRoutesParts): Route[] {
  return [
    ...routesBelow("/accounts/{account_id}/tags", parts),
    ...routesBelow("/zones/{zone_id}/tags", parts).map((route) => ({ ...route, accountOf: accountOfZones })),
  ];
}

/** A zone id means something within an account only: that of the token, or the one that the query names. */
export function accountOfZones(principal: Principal, query: URLSearchParams): string {
  return (
    query.get("account_id") ??
    (principal.kind === "token" ? principal.token.accountId : ROOT_ACCOUNT_OF_ZONES)
  );
}

function routesBelow(path: string, parts: ResourceRoutesParts): Route[] {
  return [
    defineRoute({
      method: "GET",
      path,
      access: "tags.read",
      summary: "Read the tags of one resource.",
      documents: { query: named },
      result: resourceResult,
      handler: (request) => read(parts, request),
    }),
    defineRoute({
      method: "PUT",
      path,
      access: "tags.edit",
      summary: "Set the tags of one resource: the whole set is replaced. `If-Match` makes it conditional.",
      documents: { body: set },
      result: resourceResult,
      handler: (request) => write(parts, request, "set"),
    }),
    defineRoute({
      method: "PATCH",
      path,
      access: "tags.edit",
      summary: "Merge tags into those of one resource; null removes a key. `If-Match` makes it conditional.",
      documents: { body: merge },
      result: resourceResult,
      handler: (request) => write(parts, request, "patch"),
    }),
    defineRoute({
      method: "DELETE",
      path,
      access: "tags.edit",
      summary:
        "Delete the tags of one resource, named in the body or the query. `If-Match` makes it conditional.",
      documents: { body: named, query: named.partial() },
      handler: (request) => remove(parts, request),
    }),
  ];
}

/** Parameters that name one resource; a zone's paths take the account of the zone besides. */
const NAMING = ["resource_type", "resource_id", "worker_id", "access_application_id"];
const ZONE_NAMING = [...NAMING, "account_id"];
const NO_PARAMETERS: readonly string[] = [];
const ZONE_PARAMETERS = ["account_id"];

/** Refuses what a read or a deletion of one resource does not take. */
export function allowNaming(request: RouteRequest, more: readonly string[] = []): void {
  const naming = request.params["zone_id"] === undefined ? NAMING : ZONE_NAMING;
  request.allowParameters(more.length === 0 ? naming : [...naming, ...more]);
}

/** Synchronous for a resource in memory: this is the path that is asked most. */
function read(parts: ResourceRoutesParts, request: RouteRequest): Reply | Promise<Reply> {
  allowNaming(request);
  const resource = parseResource(
    (name) => request.parameter(name) ?? undefined,
    parts.types,
    zoneOf(request),
    "tags_resource_required",
  );
  const known = parts.reader.peek(accountOf(request), resource);
  return known === undefined ? readStored(parts, accountOf(request), resource) : showText(known);
}

async function readStored(
  parts: ResourceRoutesParts,
  accountId: string,
  resource: ResourceKey,
): Promise<Reply> {
  const found = await parts.reader.findText(accountId, resource);
  if (found !== null) return showText(found);
  if (parts.missing === 200) return { resultJson: untaggedJson(resource) };
  throw new SignalboxError("tags_resource_not_found", {
    message: `resource not found: type=${resource.type} id=${resource.id}`,
    status: parts.missing,
    // Clients retry a 500 by themselves; this one stays as it is until somebody tags the resource.
    headers: { "x-should-retry": "false" },
  });
}

async function write(
  parts: ResourceRoutesParts,
  request: RouteRequest,
  action: "set" | "patch",
): Promise<Reply> {
  request.allowParameters(request.params["zone_id"] === undefined ? NO_PARAMETERS : ZONE_PARAMETERS);
  const payload = parseObject(await request.readBody(), "tags_invalid_set_payload");
  const parsed = parseTagsPayload(payload, parts.types, zoneOf(request), action === "patch");
  requireOwnAccount(parsed.resource, request);
  return showOutcome(
    await parts.writer.write(accountOf(request), { ...parsed, ...authorship(request), action }),
    parts.maxTagsPerResource,
  );
}

async function remove(parts: ResourceRoutesParts, request: RouteRequest): Promise<Reply> {
  const error = "tags_invalid_delete_payload";
  allowNaming(request);
  const body = await request.readBody();
  const payload: JsonObject = body.length === 0 ? {} : parseObject(body, error);
  const query = request.rawQuery;
  const resource = parseResource(
    (name) => namingField(payload, name) ?? query.get(name) ?? undefined,
    parts.types,
    zoneOf(request),
    error,
  );
  refuseUnknownFields(payload, error);
  const outcome = await parts.writer.write(accountOf(request), deletion(resource, request));
  return showOutcome(outcome, parts.maxTagsPerResource);
}

function deletion(resource: ResourceKey, request: RouteRequest): TagWrite {
  return { action: "delete", resource, tags: new Map(), ...authorship(request) };
}

function authorship(request: RouteRequest): Pick<TagWrite, "condition" | "actor"> {
  return {
    condition: parseIfMatch(request.headers["if-match"]),
    actor: principalName(request.principal),
  };
}

/**
 * An account's tags are its own: no other account's id is tagged, and the answer is the same whether that account exists or not. Ids of
 * other types are not looked up, so a write says nothing about what exists either.
 */
export function requireOwnAccount(resource: ResourceKey, request: RouteRequest): void {
  if (resource.type === "account" && resource.id !== accountOf(request)) {
    throw new SignalboxError("forbidden", {
      message: "Permission denied: an account's tags are set below its own path",
    });
  }
}

/** The error of a refused write. */
export function refusal(
  reason: "tags_etag_mismatch" | "tags_too_many_tags",
  maxTagsPerResource: number,
): SignalboxError {
  return reason === "tags_too_many_tags"
    ? new SignalboxError(reason, { message: `too many tags on one resource (maximum ${maxTagsPerResource})` })
    : new SignalboxError(reason);
}

function showOutcome(outcome: WriteOutcome, maxTagsPerResource: number): Reply {
  switch (outcome.kind) {
    case "stored":
      return showText(resourceText(outcome.resource));
    case "deleted":
      return { status: 204 };
    case "untagged":
      return { resultJson: untaggedJson(outcome.resource), headers: { etag: `"${EMPTY_ETAG}"` } };
    case "refused":
      throw refusal(outcome.reason, maxTagsPerResource);
  }
}

function showText(text: ResourceText): Reply {
  return { resultJson: text.json, headers: { etag: text.etag } };
}

function accountOf(request: RouteRequest): string {
  return request.params["account_id"] ?? "";
}

/** Empty for a path below an account. */
export function zoneOf(request: RouteRequest): string {
  const zoneId = request.params["zone_id"];
  if (zoneId === undefined) return "";
  if (!isIdentifier(zoneId)) {
    throw new SignalboxError("invalid_request", {
      message: "zone_id must be 1 to 64 letters, digits, _ or -",
    });
  }
  return zoneId;
}
