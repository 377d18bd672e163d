/** Writes the tags of many resources in one request. Each item succeeds or fails independently and has its own result. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { principalName } from "../accounts/index.ts";
import { defineRoute, type Reply, type Route } from "../http/route.ts";
import { parseIfMatch } from "./store/tag-write.ts";
import { parseFlag } from "./list-query.ts";
import {
  identityField,
  parseObject,
  parseResource,
  parseTagsPayload,
  requireKnownFields,
  requireObject,
} from "./payload.ts";
import { refusal, requireOwnAccount, type ResourceRoutesParts, type TagRequest } from "./resource-routes.ts";
import { resourceJson, resourceResult, untaggedJson } from "./show-resource.ts";
import type { TagWrite, WriteOutcome } from "./store/tag-write.ts";

const MAX_ITEMS = 1000;
/** Enough for `MAX_ITEMS` items with several tags each. */
const MAX_BODY_BYTES = 8 * 1024 * 1024;

const item = z.object({
  operation: z.enum(["set", "patch", "delete"]).default("set"),
  resource_type: z.string(),
  resource_id: z.string(),
  tags: z.record(z.string(), z.string().nullable()).optional(),
  name: z.string().optional(),
  if_match: z.string().optional(),
});

export function bulkRoute(parts: ResourceRoutesParts): Route {
  return defineRoute({
    method: "POST",
    effect: "action",
    path: "/accounts/{account_id}/tags/bulk",
    access: "tags.edit",
    summary: `Set, merge or delete the tags of up to ${MAX_ITEMS} resources, with a result for each. With \`dry_run\` nothing is stored.`,
    maxBodyBytes: MAX_BODY_BYTES,
    parameters: ["dry_run"],
    documents: { body: z.object({ items: z.array(item).max(MAX_ITEMS), dry_run: z.boolean().optional() }) },
    result: z.array(
      z.object({
        success: z.boolean(),
        errors: z.array(z.object({ code: z.int(), message: z.string() })),
        result: resourceResult.nullable(),
      }),
    ),
    handler: (request) => writeBulk(parts, request),
  });
}

async function writeBulk(parts: ResourceRoutesParts, request: TagRequest): Promise<Reply> {
  request.allowParameters(["dry_run"]);
  const payload = parseObject(await request.readBody(), "tags_invalid_set_payload");
  const unknown = Object.keys(payload).find((name) => name !== "items" && name !== "dry_run");
  if (unknown !== undefined) {
    throw new SignalboxError("invalid_request", { message: `unknown field ${JSON.stringify(unknown)}` });
  }
  const items = payload["items"];
  const dryRun = payload["dry_run"] ?? false;
  if (!Array.isArray(items) || typeof dryRun !== "boolean")
    throw new SignalboxError("tags_invalid_set_payload");
  if (items.length > MAX_ITEMS) {
    throw new SignalboxError("invalid_request", { message: `items: at most ${MAX_ITEMS} items` });
  }
  const isDryRun = dryRun || parseFlag(request.rawQuery, "dry_run");
  const writes = items.map((value: unknown) => parseItem(parts, request, value));
  const outcomes = await execute(parts, request, writes, isDryRun);
  const results = outcomes.map((outcome) => itemJson(outcome, parts.maxTagsPerResource));
  const failed = outcomes.filter(
    (outcome) => outcome instanceof SignalboxError || outcome.kind === "refused",
  );
  return {
    resultJson: `[${results.join(",")}]`,
    resultInfo: {
      count: results.length,
      succeeded: results.length - failed.length,
      failed: failed.length,
      dry_run: isDryRun,
    },
  };
}

/** Returns the write, or the error if the item is invalid. */
function parseItem(
  parts: ResourceRoutesParts,
  request: TagRequest,
  value: unknown,
): TagWrite | SignalboxError {
  try {
    const payload = requireObject(value, "tags_invalid_set_payload");
    const operation = payload["operation"] ?? "set";
    const ifMatch = payload["if_match"];
    if (ifMatch !== undefined && typeof ifMatch !== "string")
      throw new SignalboxError("tags_invalid_set_payload");
    const authorship = {
      condition: parseIfMatch(ifMatch),
      actor: principalName(request.principal),
      isPart: true,
    };
    if (operation === "delete") {
      const error = "tags_invalid_delete_payload";
      const resource = parseResource((name) => identityField(payload, name), parts.types, "", error);
      requireKnownFields(payload, error, true);
      return { action: "delete", resource, tags: new Map(), ...authorship };
    }
    if (operation !== "set" && operation !== "patch") throw new SignalboxError("tags_invalid_set_payload");
    const parsed = parseTagsPayload(payload, parts.types, {
      zoneId: "",
      mayRemove: operation === "patch",
      isBulkItem: true,
    });
    requireOwnAccount(parsed.resource, request);
    return { ...parsed, ...authorship, action: operation };
  } catch (error) {
    if (error instanceof SignalboxError) return error;
    throw error;
  }
}

/** Returns the outcomes in the order of the items; an item that was not parsed keeps its error. */
async function execute(
  parts: ResourceRoutesParts,
  request: TagRequest,
  writes: readonly (TagWrite | SignalboxError)[],
  isDryRun: boolean,
): Promise<(WriteOutcome | SignalboxError)[]> {
  const { account_id: accountId } = request.params;
  const valid = writes.filter((write): write is TagWrite => !(write instanceof SignalboxError));
  const outcomes: readonly (WriteOutcome | SignalboxError)[] = isDryRun
    ? await parts.writer.preview(accountId, valid)
    : await Promise.all(valid.map((write) => parts.writer.write(accountId, write).catch(toItemError)));
  let next = 0;
  return writes.map((write) =>
    write instanceof SignalboxError ? write : (outcomes[next++] as WriteOutcome | SignalboxError),
  );
}

/** An error with a code, such as an overload, is the result of the item. Any other error fails the request. */
function toItemError(error: unknown): SignalboxError {
  if (error instanceof SignalboxError) return error;
  throw error;
}

function itemJson(outcome: WriteOutcome | SignalboxError, maxTagsPerResource: number): string {
  if (outcome instanceof SignalboxError) return failureJson(outcome);
  switch (outcome.kind) {
    case "stored":
      return `{"success":true,"errors":[],"result":${resourceJson(outcome.resource)}}`;
    case "deleted":
      return '{"success":true,"errors":[],"result":null}';
    case "untagged":
      return `{"success":true,"errors":[],"result":${untaggedJson(outcome.resource)}}`;
    case "refused":
      return failureJson(refusal(outcome.reason, maxTagsPerResource));
  }
}

function failureJson(error: SignalboxError): string {
  return JSON.stringify({
    success: false,
    errors: [{ code: error.code, message: error.message }],
    result: null,
  });
}
