/** Management routes of the audit log: lists with filters, and exports. Nothing changes or deletes an entry. */
import { Readable } from "node:stream";
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { csvLine, type CsvValue, csvWithHead } from "../core/csv.ts";
import { type Access, defineRoute, type Reply, type Route } from "../http/route.ts";
import { withHash } from "./audit-entry.ts";
import type { AuditFilter, AuditReader, AuditRow } from "./audit-reader.ts";

const PAGE_SIZE = 100;
const MAX_PAGE_SIZE = 1000;

const time = z.iso
  .datetime({ offset: true })
  .or(z.iso.date())
  .transform((text) => Date.parse(text));
const word = z.string().min(1).max(256).optional();

const filters = {
  since: time.optional(),
  before: time.optional(),
  /** Id of a token, `root`, `anonymous` or `system`. */
  actor: word,
  action: word,
  outcome: z.enum(["success", "refused", "failed", "unknown"]).optional(),
  resource_type: word,
  resource_id: word,
  request_id: word,
};

const listQuery = z.object({
  ...filters,
  direction: z.enum(["asc", "desc"]).default("desc"),
  cursor: z.string().max(32).optional(),
  limit: z.coerce.number().int().min(1).max(MAX_PAGE_SIZE).default(PAGE_SIZE),
});
const exportQuery = z.object({ ...filters, format: z.enum(["ndjson", "csv"]).default("ndjson") });

const value = z.unknown().nullable();

export const auditEntryResult = z.object({
  seq: z.int(),
  id: z.string(),
  when: z.iso.datetime(),
  account_id: z.string().nullable(),
  action: z.object({
    type: z.string(),
    result: z.boolean(),
    outcome: z.enum(["success", "refused", "failed", "unknown"]),
    status: z.int().nullable(),
    code: z.int().nullable(),
    message: z.string().nullable(),
  }),
  actor: z.object({
    type: z.enum(["root", "token", "anonymous", "system"]),
    id: z.string(),
    name: z.string(),
    session: z.string().nullable(),
    ip: z.string().nullable(),
  }),
  operation: z.string(),
  resource: z.object({ type: z.string(), id: z.string(), path: z.string() }),
  request_id: z.string(),
  metadata: z.object({ user_agent: z.string().nullable(), forwarded_for: z.string().nullable() }),
  request: value,
  before: value,
  after: value,
  previous_hash: z.string(),
  hash: z.string(),
});
type AuditEntry = z.output<typeof auditEntryResult>;

const OF_ACCOUNT = "/accounts/{account_id}/audit_logs";
/** The account of writes that belong to none. */
const NO_ACCOUNT = "";

export function auditRoutes(reader: AuditReader): Route[] {
  const ofAccount = { access: "audit.read", which: "of the account" } as const;
  const ofNone = { access: "root", which: "that belong to no account" } as const;
  return [
    defineRoute({
      ...listing(ofAccount),
      path: OF_ACCOUNT,
      handler: ({ params, query }) => listRows(reader, params.account_id, query),
    }),
    defineRoute({
      ...exporting(ofAccount),
      path: `${OF_ACCOUNT}/export`,
      handler: ({ params, query }) =>
        exportRows(reader.all(params.account_id, toFilter(query)), query.format),
    }),
    defineRoute({
      ...listing(ofNone),
      path: "/audit_logs",
      handler: ({ query }) => listRows(reader, NO_ACCOUNT, query),
    }),
    defineRoute({
      ...exporting(ofNone),
      path: "/audit_logs/export",
      handler: ({ query }) => exportRows(reader.all(NO_ACCOUNT, toFilter(query)), query.format),
    }),
  ];
}

interface Writes {
  readonly access: Access;
  readonly which: string;
}

function listing({ access, which }: Writes) {
  return {
    method: "GET",
    access,
    summary: `List the management writes ${which}, newest first, refused ones included; filters by time, actor, action, outcome, resource and request.`,
    query: listQuery,
    result: z.array(auditEntryResult),
  } as const;
}

function exporting({ access, which }: Writes) {
  return {
    method: "GET",
    access,
    summary: `Download the management writes ${which}, oldest first, as NDJSON or CSV; the same filters as the list.`,
    query: exportQuery,
  } as const;
}

async function listRows(
  reader: AuditReader,
  accountId: string,
  query: z.output<typeof listQuery>,
): Promise<Reply> {
  const { direction, limit } = query;
  const after = parseCursor(query.cursor);
  const { rows, next } = await reader.page(accountId, toFilter(query), { limit, direction, after });
  const cursor = next === null ? null : String(next);
  return {
    resultJson: `[${rows.map(({ entry, hash }) => withHash(entry, hash)).join(",")}]`,
    resultInfo: { count: rows.length, cursor, cursors: cursor === null ? {} : { after: cursor } },
  };
}

function toFilter(query: Omit<z.output<typeof exportQuery>, "format">): AuditFilter {
  const { since, before, actor, action, outcome } = query;
  if (since !== undefined && before !== undefined && since >= before) {
    throw new SignalboxError("invalid_request", { message: "since must be earlier than before" });
  }
  return {
    since,
    before,
    actor,
    action,
    outcome,
    resourceType: query.resource_type,
    resourceId: query.resource_id,
    requestId: query.request_id,
  };
}

function parseCursor(cursor: string | undefined): number | null {
  if (cursor === undefined) return null;
  if (!/^\d{1,15}$/.test(cursor)) throw new SignalboxError("invalid_request", { message: "cursor: unknown" });
  return Number(cursor);
}

function exportRows(rows: AsyncIterable<AuditRow>, format: "ndjson" | "csv"): Reply {
  const lines =
    format === "csv"
      ? csvWithHead(csvLine(CSV_COLUMNS.map(([name]) => name)), csvLines(rows))
      : ndjsonLines(rows);
  return {
    raw: {
      contentType: format === "csv" ? "text/csv; charset=utf-8" : "application/x-ndjson",
      body: Readable.from(lines),
    },
    headers: {
      "cache-control": "no-store",
      "content-disposition": `attachment; filename="audit-log.${format}"`,
    },
  };
}

async function* ndjsonLines(rows: AsyncIterable<AuditRow>): AsyncGenerator<string> {
  for await (const { entry, hash } of rows) yield `${withHash(entry, hash)}\n`;
}

async function* csvLines(rows: AsyncIterable<AuditRow>): AsyncGenerator<string> {
  for await (const row of rows) {
    const entry = { ...(JSON.parse(row.entry) as AuditEntry), hash: row.hash };
    yield csvLine(CSV_COLUMNS.map(([, read]) => read(entry)));
  }
}

const json = (member: unknown): string => (member === null ? "" : JSON.stringify(member));

const CSV_COLUMNS: readonly (readonly [string, (entry: AuditEntry) => CsvValue])[] = [
  ["seq", (entry) => entry.seq],
  ["id", (entry) => entry.id],
  ["when", (entry) => entry.when],
  ["account_id", (entry) => entry.account_id],
  ["action", (entry) => entry.action.type],
  ["outcome", (entry) => entry.action.outcome],
  ["status", (entry) => entry.action.status],
  ["code", (entry) => entry.action.code],
  ["message", (entry) => entry.action.message],
  ["actor_type", (entry) => entry.actor.type],
  ["actor_id", (entry) => entry.actor.id],
  ["actor_name", (entry) => entry.actor.name],
  ["session", (entry) => entry.actor.session],
  ["ip", (entry) => entry.actor.ip],
  ["operation", (entry) => entry.operation],
  ["resource_type", (entry) => entry.resource.type],
  ["resource_id", (entry) => entry.resource.id],
  ["path", (entry) => entry.resource.path],
  ["request_id", (entry) => entry.request_id],
  ["user_agent", (entry) => entry.metadata.user_agent],
  ["request", (entry) => json(entry.request)],
  ["before", (entry) => json(entry.before)],
  ["after", (entry) => json(entry.after)],
  ["hash", (entry) => entry.hash],
];
