/** `signalbox audit …` */
import type { AuditEntry, AuditQuery } from "@signalbox/client";
import { checkChain } from "./audit-chain.ts";
import { type Command, type CommandContext, type CommandOption, UsageError } from "./command.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { copyBody, linesOf } from "./read-body.ts";
import { table } from "./table.ts";

const FILTER_OPTIONS: readonly CommandOption[] = [
  {
    name: "since",
    value: "TIME",
    summary: "only entries from this time on (2026-01-31 or 2026-01-31T12:00:00Z)",
  },
  { name: "before", value: "TIME", summary: "only entries before this time" },
  { name: "actor", value: "ID", summary: "only writes of this token id, or of root, anonymous or system" },
  { name: "action", value: "NAME", summary: "only this action: create, update, delete, rotate, …" },
  {
    name: "outcome",
    value: "OUTCOME",
    summary: "only success, refused, failed or unknown",
    values: ["success", "refused", "failed", "unknown"],
  },
  { name: "resource-type", value: "TYPE", summary: "only this kind of resource, e.g. gateways or tokens" },
  { name: "resource-id", value: "ID", summary: "only this resource" },
  { name: "request-id", value: "ID", summary: "only this request" },
];
const SERVICE_OPTION: CommandOption = {
  name: "service",
  summary: "the entries that belong to no account, such as new accounts and unknown callers (root token)",
};
const COMMON: readonly CommandOption[] = [SERVICE_OPTION, ACCOUNT_OPTION, ...CLIENT_OPTIONS];

const MAX_ROWS = 1000;
const DEFAULT_ROWS = 50;

export const auditCommands: readonly Command[] = [
  {
    words: ["audit", "list"],
    summary: "List management writes, newest first: who changed what, from where, with which outcome.",
    options: [
      { name: "limit", value: "N", summary: `number of rows, at most ${MAX_ROWS} (default ${DEFAULT_ROWS})` },
      ...FILTER_OPTIONS,
      ...COMMON,
    ],
    async run(context) {
      const limit = rowLimit(context);
      const api = await auditOf(context);
      const rows = await api.list({ ...queryOf(context), limit }).all(limit);
      context.print(rows, (entries) => table(COLUMNS, entries.map(toCells), "no entries"));
    },
  },
  {
    words: ["audit", "export"],
    summary: "Write all entries to standard output, oldest first, as NDJSON or CSV.",
    options: [
      { name: "format", value: "FORMAT", summary: "ndjson (default) or csv", values: ["ndjson", "csv"] },
      ...FILTER_OPTIONS,
      ...COMMON,
    ],
    async run(context) {
      const format = context.option("format") ?? "ndjson";
      if (format !== "ndjson" && format !== "csv") throw new UsageError("--format: expected ndjson or csv");
      const api = await auditOf(context);
      await copyBody(await api.export({ ...queryOf(context), format }), context.out);
    },
  },
  {
    words: ["audit", "verify"],
    summary: "Recompute the hashes of all entries; exit code 1 if an entry was changed or is missing.",
    options: [
      {
        name: "head",
        value: "HASH",
        summary: "hash of an entry that was noted earlier; it must still be in the chain",
      },
      ...COMMON,
    ],
    async run(context) {
      const api = await auditOf(context);
      const lines = linesOf(await api.export());
      const report = await checkChain(lines, context.option("head"));
      context.print(report, ({ entries, first, last, hash, problem }) =>
        problem === null
          ? `${entries} ${entries === 1 ? "entry" : "entries"}, numbers ${first} to ${last}: the chain is intact\nnewest hash ${hash}\n`
          : `the chain is broken: ${problem}\n`,
      );
      return report.problem === null ? 0 : 1;
    },
  },
];

async function auditOf(context: CommandContext) {
  return context.hasSwitch("service") ? (await context.client()).audit : (await context.account()).audit;
}

function queryOf(context: CommandContext): AuditQuery {
  return {
    since: context.option("since"),
    before: context.option("before"),
    actor: context.option("actor"),
    action: context.option("action"),
    outcome: context.option("outcome"),
    resource_type: context.option("resource-type"),
    resource_id: context.option("resource-id"),
    request_id: context.option("request-id"),
  };
}

function rowLimit(context: CommandContext): number {
  const text = context.option("limit") ?? String(DEFAULT_ROWS);
  const limit = Number(text);
  if (!/^[1-9]\d{0,3}$/.test(text) || limit > MAX_ROWS) {
    throw new UsageError(`--limit: expected a whole number from 1 to ${MAX_ROWS}, found ${text}`);
  }
  return limit;
}

const COLUMNS = ["time", "actor", "address", "action", "resource", "outcome", "status", "request"];

function toCells({ when, actor, action, resource, request_id: requestId }: AuditEntry): string[] {
  return [
    when,
    actor.type === "token" ? `${actor.name} (${actor.id})` : actor.type,
    actor.ip ?? "-",
    action.type,
    resource.id === "" ? resource.type : `${resource.type}/${resource.id}`,
    action.outcome,
    action.status === null ? "-" : String(action.status),
    requestId === "" ? "-" : requestId,
  ];
}
