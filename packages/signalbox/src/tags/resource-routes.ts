/**
 * Reads, sets, merges and deletes the tags of one resource, below an account and below a zone.
 * See tags/README.md.
 */
import { isIdentifier, SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { principalName } from "../accounts/index.ts";
import type { Principal } from "../accounts/principal.ts";
import { defineRoute, type Reply, type Route, type RouteRequest } from "../http/route.ts";
import { EMPTY_ETAG, isMet, parseIfMatch, parseIfNoneMatch } from "./store/tag-write.ts";
import {
  type JsonObject,
  identityField,
  parseObject,
  parseResource,
  parseTagsPayload,
  requireKnownFields,
} from "./payload.ts";
import type { ResourceTypes } from "./payload.ts";
import { resourceResult, resourceText, untaggedJson } from "./show-resource.ts";
import type { ResourceText } from "./store/resource-cache.ts";
import type { ResourceKey } from "./store/resource-row.ts";
import type { TagReader } from "./store/tag-reader.ts";
import type { TagWrite, WriteOutcome, WriteRefusal } from "./store/tag-write.ts";
import type { TagWriter } from "./store/tag-writer.ts";

export interface ResourceRoutesParts {
  readonly reader: TagReader;
  readonly writer: TagWriter;
  readonly types: ResourceTypes;
  /** Status of the response to a read of a resource that was never tagged. */
  readonly missing: number;
  readonly maxTagsPerResource: number;
}

/** The root token belongs to no account. Without `account_id` this account is used for zones. */
const ROOT_ACCOUNT_OF_ZONES = "default";

const named = z.object({
  resource_type: z.string(),
  resource_id: z.string(),
  worker_id: z.string().optional(),
  access_application_id: z.string().optional(),
});
const set = named.extend({ tags: z.record(z.string(), z.string()), name: z.string().optional() });
const merge = set.extend({ tags: z.record(z.string(), z.string().nullable()) });

/** A request below an account, or below a zone, whose account is that of `accountOfZones`. */
export type TagRequest = RouteRequest<
  unknown,
  unknown,
  { readonly account_id: string; readonly zone_id?: string }
>;

export function resourceRoutes(parts: ResourceRoutesParts): Route[] {
  const operations = resourceOperations(parts);
  return [
    ...operations.map((operation) => defineRoute({ ...operation, path: "/accounts/{account_id}/tags" })),
    ...operations.map((operation) =>
      defineRoute({ ...operation, path: "/zones/{zone_id}/tags", accountOf: accountOfZones }),
    ),
  ];
}

/** The account of a zone: the parameter `account_id`, otherwise the account of the token. */
export function accountOfZones(principal: Principal, query: URLSearchParams): string {
  return (
    query.get("account_id") ??
    (principal.kind === "token" ? principal.token.accountId : ROOT_ACCOUNT_OF_ZONES)
  );
}

function resourceOperations(parts: ResourceRoutesParts) {
  return [
    {
      method: "GET",
      access: "tags.read",
      summary: "Read the tags of one resource. `If-None-Match` with its etag is answered with 304.",
      documents: { query: named },
      result: resourceResult,
      handler: (request: TagRequest) => read(parts, request),
    },
    {
      method: "PUT",
      access: "tags.edit",
      summary:
        "Replace all tags of one resource. `If-Match` makes the write conditional; `If-None-Match: *` only creates.",
      documents: { body: set },
      recordsChange: true,
      result: resourceResult,
      handler: (request: TagRequest) => write(parts, request, "set"),
    },
    {
      method: "PATCH",
      access: "tags.edit",
      summary:
        "Merge tags into the tags of one resource; null removes a key. `If-Match` makes the write conditional.",
      documents: { body: merge },
      recordsChange: true,
      result: resourceResult,
      handler: (request: TagRequest) => write(parts, request, "patch"),
    },
    {
      method: "DELETE",
      access: "tags.edit",
      summary:
        "Delete the tags of one resource, which is identified in the body or the query. `If-Match` makes the deletion conditional.",
      documents: { body: named, query: named.partial() },
      recordsChange: true,
      handler: (request: TagRequest) => remove(parts, request),
    },
  ] as const;
}

/** Parameters that identify a resource. Paths below a zone also accept the account. */
const IDENTITY = ["resource_type", "resource_id", "worker_id", "access_application_id"];
const ZONE_IDENTITY = [...IDENTITY, "account_id"];
const NO_PARAMETERS: readonly string[] = [];
const ZONE_PARAMETERS = ["account_id"];

/** Throws if the query has other parameters than those that identify a resource and `more`. */
export function allowIdentity(request: TagRequest, more: readonly string[] = []): void {
  const identity = request.params.zone_id === undefined ? IDENTITY : ZONE_IDENTITY;
  request.allowParameters(more.length === 0 ? identity : [...identity, ...more]);
}

/** Synchronous if the resource is cached, because this is the most frequent request. */
function read(parts: ResourceRoutesParts, request: TagRequest): Reply | Promise<Reply> {
  allowIdentity(request);
  const resource = parseResource(
    (name) => request.parameter(name) ?? undefined,
    parts.types,
    zoneOf(request),
    "tags_resource_required",
  );
  const known = parts.reader.peek(request.params.account_id, resource);
  return known === undefined ? readStored(parts, request, resource) : readReply(known, request);
}

/** 304 if the client has these tags already. */
function readReply(text: ResourceText, request: TagRequest): Reply {
  const header = request.headers["if-none-match"];
  const isKnown = header !== undefined && isMet(parseIfNoneMatch(header), text.etag.slice(1, -1), false);
  return isKnown ? { status: 304, headers: { etag: text.etag } } : textReply(text);
}

async function readStored(
  parts: ResourceRoutesParts,
  request: TagRequest,
  resource: ResourceKey,
): Promise<Reply> {
  const found = await parts.reader.findText(request.params.account_id, resource);
  if (found !== null) return readReply(found, request);
  if (parts.missing === 200) return { resultJson: untaggedJson(resource) };
  throw new SignalboxError("tags_resource_not_found", {
    message: `resource not found: type=${resource.type} id=${resource.id}`,
    status: parts.missing,
    // Clients retry a response with status 500. A retry of this one has the same result until the resource is tagged.
    headers: { "x-should-retry": "false" },
  });
}

async function write(
  parts: ResourceRoutesParts,
  request: TagRequest,
  action: "set" | "patch",
): Promise<Reply> {
  request.allowParameters(request.params.zone_id === undefined ? NO_PARAMETERS : ZONE_PARAMETERS);
  const payload = parseObject(await request.readBody(), "tags_invalid_set_payload");
  const parsed = parseTagsPayload(payload, parts.types, {
    zoneId: zoneOf(request),
    mayRemove: action === "patch",
    isBulkItem: false,
  });
  requireOwnAccount(parsed.resource, request);
  return toReply(
    await parts.writer.write(request.params.account_id, { ...parsed, ...authorship(request), action }),
    parts.maxTagsPerResource,
  );
}

async function remove(parts: ResourceRoutesParts, request: TagRequest): Promise<Reply> {
  const error = "tags_invalid_delete_payload";
  allowIdentity(request);
  const body = await request.readBody();
  const payload = body.length === 0 ? null : parseObject(body, error);
  const resource = parseResource(
    (name) => (payload === null ? (request.parameter(name) ?? undefined) : identityField(payload, name)),
    parts.types,
    zoneOf(request),
    error,
  );
  if (payload !== null) {
    requireKnownFields(payload, error);
    requireAgreement(payload, request);
  }
  const outcome = await parts.writer.write(request.params.account_id, deletion(resource, request));
  return toReply(outcome, parts.maxTagsPerResource);
}

/** A body identifies the resource alone. A query that names another one beside it makes it unclear which one is meant. */
function requireAgreement(payload: JsonObject, request: TagRequest): void {
  for (const name of IDENTITY) {
    const given = request.parameter(name);
    if (given !== null && given !== identityField(payload, name)) {
      throw new SignalboxError("tags_invalid_delete_payload", {
        message: `Invalid delete payload: ${name} differs from the query`,
      });
    }
  }
}

function deletion(resource: ResourceKey, request: TagRequest): TagWrite {
  return { action: "delete", resource, tags: new Map(), ...authorship(request) };
}

function authorship(request: TagRequest): Pick<TagWrite, "condition" | "except" | "actor"> {
  return {
    condition: parseIfMatch(request.headers["if-match"]),
    except: parseIfNoneMatch(request.headers["if-none-match"]),
    actor: principalName(request.principal),
  };
}

/**
 * Throws if the resource is another account. The error does not depend on whether that account exists. Ids of other types are not looked up, so
 * a write does not reveal whether a resource exists.
 */
export function requireOwnAccount(resource: ResourceKey, request: TagRequest): void {
  if (resource.type === "account" && resource.id !== request.params.account_id) {
    throw new SignalboxError("forbidden", {
      message: "Permission denied: the tags of an account can be changed only below the path of that account",
    });
  }
}

/** The error of a write that was not carried out. */
export function refusal(reason: WriteRefusal, maxTagsPerResource: number): SignalboxError {
  return reason === "tags_too_many_tags"
    ? new SignalboxError(reason, { message: `too many tags on one resource (maximum ${maxTagsPerResource})` })
    : new SignalboxError(reason);
}

function toReply(outcome: WriteOutcome, maxTagsPerResource: number): Reply {
  switch (outcome.kind) {
    case "stored":
      return textReply(resourceText(outcome.resource));
    case "deleted":
      return { status: 204 };
    case "untagged":
      return { resultJson: untaggedJson(outcome.resource), headers: { etag: `"${EMPTY_ETAG}"` } };
    case "refused":
      throw refusal(outcome.reason, maxTagsPerResource);
  }
}

function textReply(text: ResourceText): Reply {
  return { resultJson: text.json, headers: { etag: text.etag } };
}

/** The zone of the path; empty for a path below an account. */
export function zoneOf(request: TagRequest): string {
  const zoneId = request.params.zone_id;
  if (zoneId === undefined) return "";
  if (!isIdentifier(zoneId)) {
    throw new SignalboxError("invalid_request", {
      message: "zone_id must be 1 to 64 letters, digits, _ or -",
    });
  }
  return zoneId;
}
