/** Management routes of jobs: changes of the tags of many resources in the background. */
import { checkTags, formatTagFilter, SignalboxError, TAG_LIMITS } from "@signalbox/protocol";
import { z } from "zod";
import { principalName } from "../../accounts/index.ts";
import { invalidRequest } from "../../core/invalid-request.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import {
  decodeCursor,
  decodeNumericCursor,
  encodeCursor,
  pageInfo,
  parseResourceQuery,
} from "../list-query.ts";
import { type JsonObject, parseObject, requireObject, type ResourceTypes } from "../payload.ts";
import { refusal } from "../resource-routes.ts";
import { scopeOf } from "../show-resource.ts";
import type { JobFailure, JobRequest, TagJob } from "./tag-job.ts";
import type { TagJobs } from "./tag-jobs.ts";

export interface JobRoutesParts {
  readonly jobs: TagJobs;
  readonly types: ResourceTypes;
  readonly maxTagsPerResource: number;
}

const JOBS = "/accounts/{account_id}/tags/jobs";

/** Without `tags`, whose members are read as entries (see payload.ts). */
const bodyWithoutTags = z.strictObject({
  operation: z.enum(["set", "patch", "delete"]),
  tag: z.array(z.string()).default([]),
  type: z.array(z.string()).default([]),
  id: z.array(z.string()).default([]),
  name: z.string().optional(),
  case_insensitive: z.boolean().default(false),
  /** In place of a filter: all tagged resources. */
  all: z.literal(true).optional(),
  dry_run: z.boolean().default(false),
});

const changes = z.record(z.string(), z.string().nullable());
const body = bodyWithoutTags.extend({ tags: changes.optional() });

const jobResult = z.object({
  id: z.string(),
  operation: z.enum(["set", "patch", "delete"]),
  tags: changes,
  query: z.object({
    tag: z.array(z.string()),
    type: z.array(z.string()),
    id: z.array(z.string()),
    name: z.string().nullable(),
    case_insensitive: z.boolean(),
  }),
  state: z.enum(["running", "done", "cancelled", "failed"]),
  actor: z.string(),
  total: z.int(),
  processed: z.int(),
  changed: z.int(),
  unchanged: z.int(),
  failed: z.int(),
  created_at: z.iso.datetime(),
  started_at: z.iso.datetime().nullable(),
  ended_at: z.iso.datetime().nullable(),
});

const failureResult = z.object({
  type: z.string(),
  id: z.string(),
  zone_id: z.string().optional(),
  worker_id: z.string().optional(),
  access_application_id: z.string().optional(),
  errors: z.array(z.object({ code: z.int(), message: z.string() })),
});

const paging = z.object({ cursor: z.string().optional() });

export function jobRoutes(parts: JobRoutesParts): Route[] {
  const { jobs } = parts;
  return [
    defineRoute({
      method: "POST",
      effect: "create",
      path: JOBS,
      access: "tags.edit",
      summary:
        "Change the tags of all resources that match, in the background: `set`, `patch` or `delete`. With `dry_run` only count them.",
      documents: { body },
      result: z.union([jobResult, z.object({ total: z.int() })]),
      handler: async (request) => {
        const { account_id: accountId } = request.params;
        const payload = parseObject(await request.readBody(), "tags_invalid_set_payload");
        const { job, isDryRun } = parseJob(payload, parts);
        if (isDryRun) return { result: { total: await jobs.plan(accountId, job) } };
        const created = await jobs.create(accountId, job, principalName(request.principal));
        return { status: 202, result: show(created) };
      },
    }),
    defineRoute({
      method: "GET",
      path: JOBS,
      access: "tags.read",
      summary: "List jobs, newest first, 100 per page.",
      documents: { query: paging },
      result: z.array(jobResult),
      handler: async ({ params, rawQuery }) => {
        const before = decodeCursor(rawQuery.get("cursor"), JOB_LIST);
        const found = await jobs.list(params.account_id, before, TAG_LIMITS.page + 1);
        const page = found.slice(0, TAG_LIMITS.page);
        const last = found.length > TAG_LIMITS.page ? page.at(-1) : undefined;
        const cursor = last === undefined ? null : encodeCursor(last.id, JOB_LIST);
        return { result: page.map(show), resultInfo: pageInfo(page.length, cursor) };
      },
    }),
    defineRoute({
      method: "GET",
      path: `${JOBS}/{job_id}`,
      access: "tags.read",
      summary: "Read the progress of a job.",
      result: jobResult,
      handler: async ({ params }) => ({ result: show(await jobs.find(params.account_id, params.job_id)) }),
    }),
    defineRoute({
      method: "GET",
      path: `${JOBS}/{job_id}/failures`,
      access: "tags.read",
      summary: "List the resources that a job could not change, with the error of each, 100 per page.",
      documents: { query: paging },
      result: z.array(failureResult),
      handler: async ({ params, rawQuery }) => {
        const list = { list: "failures", job: params.job_id };
        const after = decodeNumericCursor(rawQuery.get("cursor"), list) ?? -1;
        const found = await jobs.failures(params.account_id, params.job_id, after, TAG_LIMITS.page + 1);
        const page = found.slice(0, TAG_LIMITS.page);
        const last = found.length > TAG_LIMITS.page ? page.at(-1) : undefined;
        const cursor = last === undefined ? null : encodeCursor(String(last.resourceNo), list);
        return {
          result: page.map((failure) => showFailure(failure, parts.maxTagsPerResource)),
          resultInfo: pageInfo(page.length, cursor),
        };
      },
    }),
    defineRoute({
      method: "POST",
      effect: "action",
      path: `${JOBS}/{job_id}/cancel`,
      access: "tags.edit",
      summary: "Cancel a job: it changes nothing more. Changes that it has made stay.",
      result: jobResult,
      handler: async ({ params }) => ({ result: show(await jobs.cancel(params.account_id, params.job_id)) }),
    }),
  ];
}

const JOB_LIST = { list: "jobs" };

function parseJob(
  { tags, ...rest }: JsonObject,
  { types, maxTagsPerResource }: JobRoutesParts,
): { job: JobRequest; isDryRun: boolean } {
  const parsed = bodyWithoutTags.safeParse(rest);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw invalidRequest([issue?.path.join("."), issue?.message].filter(Boolean).join(": "));
  }
  const { operation, all, dry_run: isDryRun, ...selection } = parsed.data;
  const query = parseResourceQuery(toParameters(selection), types);
  const isFiltered =
    query.filters.length > 0 || query.types.length > 0 || query.ids.length > 0 || query.name !== null;
  // A filter that a client forgets, or builds from an empty list, must not change everything.
  if (isFiltered === (all === true)) {
    throw invalidRequest("give a filter (tag, type, id, name), or all: true for all tagged resources");
  }
  return { job: { query, operation, tags: parseTags(operation, tags, maxTagsPerResource) }, isDryRun };
}

function toParameters(selection: {
  readonly tag: readonly string[];
  readonly type: readonly string[];
  readonly id: readonly string[];
  readonly name?: string | undefined;
  readonly case_insensitive: boolean;
}): URLSearchParams {
  const parameters = new URLSearchParams({ case_insensitive: String(selection.case_insensitive) });
  for (const name of ["tag", "type", "id"] as const) {
    for (const value of selection[name]) parameters.append(name, value);
  }
  if (selection.name !== undefined) parameters.append("name", selection.name);
  return parameters;
}

function parseTags(
  operation: JobRequest["operation"],
  tags: unknown,
  maxTagsPerResource: number,
): JobRequest["tags"] {
  if (operation === "delete") {
    if (tags !== undefined) throw invalidRequest("tags: a deletion has none");
    return [];
  }
  const error = "tags_invalid_set_payload";
  const entries = Object.entries(requireObject(tags, error));
  const values: string[] = [];
  for (const [, value] of entries) {
    if (operation === "patch" && value === null) continue;
    if (typeof value !== "string" || !value.isWellFormed()) throw new SignalboxError(error);
    values.push(value);
  }
  if (entries.length === 0)
    throw invalidRequest("tags: must not be empty; the operation delete removes all tags");
  checkTags(
    entries.map(([key]) => key),
    values,
  );
  if (values.length > maxTagsPerResource) throw refusal("tags_too_many_tags", maxTagsPerResource);
  return entries as [string, string | null][];
}

function show(job: TagJob): z.input<typeof jobResult> {
  const { query, operation, tags } = job.request;
  return {
    id: job.id,
    operation,
    tags: Object.fromEntries(tags),
    query: {
      tag: query.filters.map(formatTagFilter),
      type: [...query.types],
      id: [...query.ids],
      name: query.name,
      case_insensitive: query.isCaseInsensitive,
    },
    state: job.state,
    actor: job.actor,
    total: job.total,
    processed: job.changed + job.unchanged + job.failed,
    changed: job.changed,
    unchanged: job.unchanged,
    failed: job.failed,
    created_at: new Date(job.createdAt).toISOString(),
    started_at: timeOf(job.startedAt),
    ended_at: timeOf(job.endedAt),
  };
}

function timeOf(time: number | null): string | null {
  return time === null ? null : new Date(time).toISOString();
}

function showFailure(
  { resource, reason }: JobFailure,
  maxTagsPerResource: number,
): z.input<typeof failureResult> {
  const { code, message } = refusal(reason, maxTagsPerResource);
  return { type: resource.type, id: resource.id, ...scopeOf(resource), errors: [{ code, message }] };
}
