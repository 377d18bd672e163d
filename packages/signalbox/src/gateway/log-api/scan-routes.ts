/** Calls of all gateways in one view, with previews and search in prompts and answers, and their export. */
import { Readable } from "node:stream";
import { z } from "zod";
import { csvWithHead } from "../../core/csv.ts";
import type { CallLog, CallScan, ScannedCall } from "../../engines/call-log/index.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { callResult, showCall } from "./call-fields.ts";
import { callCsvHead, callCsvLine, callNdjson } from "./export-lines.ts";
import { FILTER_PARTS } from "./parse-selection.ts";
import { requireCursor, scanParameters, toScan } from "./scan-selection.ts";
import { unreadableMessages } from "./unreadable-days.ts";

const PATH = "/accounts/{account_id}/ai-gateway/logs";
const PREVIEW_LENGTH = 200;
const MAX_LIMIT = 500;
/** Time of one request. A search that has found less continues with the cursor. */
const MAX_SEARCH_MS = 3000;
/** A slice is shorter; what is longer is a pause of the process, in which nothing was searched. */
const MAX_SLICE_MS = 500;
/** Calls of one slice of an export. */
const EXPORT_SLICE = 500;

const listQuery = z.object({
  ...scanParameters,
  cursor: z.string().max(64).optional(),
  limit: z.coerce.number().int().min(1).max(MAX_LIMIT).default(50),
});
const exportQuery = z.object({
  ...scanParameters,
  direction: z.enum(["asc", "desc"]).default("asc"),
  format: z.enum(["ndjson", "csv"]).default("ndjson"),
  /** NDJSON only: with `request` and `response`. */
  bodies: z.enum(["true", "false"]).default("false"),
});

const scannedResult = callResult.extend({
  gateway_id: z.string(),
  /** The beginning of the last message of the user, and of the answer; null without stored text. */
  prompt: z.string().nullable(),
  answer: z.string().nullable(),
});

export interface ScanRouteParts {
  readonly callLog: Pick<CallLog, "scan" | "unreadableDays">;
}

export function scanRoutes({ callLog }: ScanRouteParts): Route[] {
  return [
    defineRoute({
      method: "GET",
      path: PATH,
      access: "gateway.read",
      summary:
        "List stored calls of all gateways in the order in which they ended, newest first, with previews; `q` searches in prompts and answers, `filters` as in the list of one gateway.",
      query: listQuery,
      parameters: "handler",
      repeatable: ["gateway_id", ...FILTER_PARTS],
      narrowsToGateway: true,
      result: z.array(scannedResult),
      handler: async ({ params, query, rawQuery, principal, signal }) => {
        const accountId = params.account_id;
        const scan = toScan(accountId, query, rawQuery, principal, Object.keys(listQuery.shape));
        requireCursor(query.cursor);
        const found = await search(callLog, scan, query, signal);
        return {
          result: found.calls.map(showScanned),
          resultInfo: {
            count: found.calls.length,
            cursor: found.next,
            cursors: found.next === null ? {} : { after: found.next },
            /** Calls that were looked at. A short page with a cursor is a search that has not ended. */
            scanned: found.scanned,
          },
          messages: unreadableMessages(callLog),
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: `${PATH}/export`,
      access: "gateway.read",
      summary:
        "Download stored calls of all gateways, oldest first, as NDJSON (with `bodies=true` including the bodies) or CSV; the same filters as the list.",
      query: exportQuery,
      parameters: "handler",
      repeatable: ["gateway_id", ...FILTER_PARTS],
      narrowsToGateway: true,
      handler: ({ params, query, rawQuery, principal }) => {
        const accountId = params.account_id;
        const selected = toScan(accountId, query, rawQuery, principal, Object.keys(exportQuery.shape));
        const isCsv = query.format === "csv";
        const scan = {
          ...selected,
          previewLength: isCsv ? PREVIEW_LENGTH : 0,
          withBodies: !isCsv && query.bodies === "true",
        };
        return {
          raw: {
            contentType: isCsv ? "text/csv; charset=utf-8" : "application/x-ndjson",
            // One slice at a time: with bodies it can have megabytes, and a client may never read.
            body: Readable.from(
              isCsv ? csvWithHead(callCsvHead(), csvLines(callLog, scan)) : ndjsonLines(callLog, scan),
              {
                highWaterMark: 1,
              },
            ),
          },
          headers: {
            "cache-control": "no-store",
            "content-disposition": `attachment; filename="calls.${query.format}"`,
          },
        };
      },
    }),
  ];
}

type Selected = Omit<CallScan, "cursor" | "limit" | "previewLength" | "withBodies">;

async function search(
  callLog: Pick<CallLog, "scan">,
  scan: Selected,
  { cursor = null, limit }: { readonly cursor?: string | null | undefined; readonly limit: number },
  signal: AbortSignal,
): Promise<{ calls: ScannedCall[]; next: string | null; scanned: number }> {
  const calls: ScannedCall[] = [];
  let searchedMs = 0;
  let next: string | null = cursor;
  let scanned = 0;
  do {
    const startedAt = performance.now();
    const options = {
      cursor: next,
      limit: limit - calls.length,
      previewLength: PREVIEW_LENGTH,
      withBodies: false,
    };
    const slice = await callLog.scan({ ...scan, ...options });
    calls.push(...slice.calls);
    scanned += slice.scanned;
    ({ next } = slice);
    searchedMs += Math.min(performance.now() - startedAt, MAX_SLICE_MS);
  } while (next !== null && calls.length < limit && searchedMs < MAX_SEARCH_MS && !signal.aborted);
  return { calls, next, scanned };
}

/** Yields slice by slice: the next one is read when the client has taken the previous one. */
async function* slices(
  callLog: Pick<CallLog, "scan">,
  scan: Omit<CallScan, "cursor" | "limit">,
): AsyncGenerator<readonly ScannedCall[]> {
  let cursor: string | null = null;
  do {
    const slice = await callLog.scan({ ...scan, cursor, limit: EXPORT_SLICE });
    yield slice.calls;
    cursor = slice.next;
  } while (cursor !== null);
}

async function* ndjsonLines(callLog: Pick<CallLog, "scan">, scan: Omit<CallScan, "cursor" | "limit">) {
  for await (const calls of slices(callLog, scan))
    yield calls.map((call) => callNdjson(call, scan.withBodies)).join("");
}

async function* csvLines(callLog: Pick<CallLog, "scan">, scan: Omit<CallScan, "cursor" | "limit">) {
  for await (const calls of slices(callLog, scan)) yield calls.map(callCsvLine).join("");
}

function showScanned({ row, prompt, answer }: ScannedCall): Record<string, unknown> {
  return { ...showCall(row), gateway_id: row.gatewayId, prompt, answer };
}
