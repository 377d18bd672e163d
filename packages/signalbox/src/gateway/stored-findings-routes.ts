/** Guardrails and stored calls: what the rules have found, and what other rules would have done. Both read rows in slices, in turns with other accounts. */
import { z } from "zod";
import { guardrailRules, type Principal } from "../accounts/index.ts";
import type { LongWork } from "../core/long-work.ts";
import type { ScannedCall } from "../engines/call-log/index.ts";
import { defineRoute, type Route } from "../http/route.ts";
import { ACCOUNT_GUARDRAILS } from "./guardrail-routes.ts";
import { FindingCounts } from "./guardrails/finding-counts.ts";
import { ACTIONS, type Finding } from "./guardrails/findings.ts";
import { CallTrial } from "./guardrails/try-calls.ts";
import type { LogReads } from "./log-api/log-reads.ts";
import { FILTER_PARTS } from "./log-api/parse-selection.ts";
import { requireCursor, scanParameters, toScan } from "./log-api/scan-selection.ts";

/** Of one request, without the time in which others had their turns. */
const MAX_TAKEN_MS = 3000;
/** A piece of work is shorter; what is longer is a pause of the process. */
const MAX_PIECE_MS = 500;
/** Calls with their bodies that are in memory at a time; the log ends a slice earlier at 4 MiB. */
const BODIES_AT_ONCE = 50;
const ROWS_AT_ONCE = 500;

const query = z.object({
  ...scanParameters,
  cursor: z.string().max(64).optional(),
  /** Calls that one request looks at; `cursor` continues. */
  limit: z.coerce.number().int().min(1).max(10_000).default(1000),
  /** Calls that are shown. */
  samples: z.coerce.number().int().min(0).max(100).default(20),
});
type Query = z.output<typeof query>;

const action = z.enum(ACTIONS);
const finding = z.object({
  rule: z.string(),
  owner: z.string(),
  place: z.enum(["prompt", "response"]),
  action,
  kind: z.string(),
  count: z.int(),
});
const found = z.object({
  /** Calls by the strictest action. */
  block: z.int(),
  mask: z.int(),
  flag: z.int(),
  /** `calls` with such a finding, the texts in them (`count`), and what these calls cost, as far as it is known. */
  rules: z.array(finding.extend({ calls: z.int(), cost: z.number() })),
  samples: z.array(
    z.object({
      id: z.string(),
      gateway_id: z.string(),
      created_at: z.string(),
      action,
      findings: z.array(finding),
    }),
  ),
});
const tried = found.extend({
  /** Calls that were searched, and of these those with a body that is not stored as a whole. */
  calls: z.int(),
  incomplete: z.int(),
});

const common = {
  access: "gateway.read",
  query,
  parameters: "handler",
  repeatable: ["gateway_id", ...FILTER_PARTS],
  narrowsToGateway: true,
} as const;

export interface StoredFindingsParts {
  readonly reads: Pick<LogReads, "scan">;
  /** Texts that take the event loop for long. */
  readonly longBodies: LongWork;
}

export function storedFindingsRoutes({ reads, longBodies }: StoredFindingsParts): Route[] {
  return [
    defineRoute({
      ...common,
      method: "GET",
      path: `${ACCOUNT_GUARDRAILS}/findings`,
      summary:
        "What guardrails have found in stored calls, newest first: by action, by rule, and some of the calls. The filters of the list of calls.",
      result: found,
      handler: async ({ params, query: wanted, rawQuery, principal, signal }) => {
        const counts = new FindingCounts(wanted.samples);
        const scan = selectionOf(params.account_id, wanted, rawQuery, principal);
        const { filters } = scan.selection;
        const selection = {
          ...scan.selection,
          filters: [...filters, { field: "guardrailAction", operator: "eq", values: [...ACTIONS] } as const],
        };
        const cursor = await eachSlice(wanted, ROWS_AT_ONCE, signal, async (cursorNow, limit) => {
          const slice = await reads.scan({
            ...scan,
            selection,
            cursor: cursorNow,
            limit,
            previewLength: 0,
            withBodies: false,
          });
          for (const { row } of slice.calls) {
            const strictest = ACTIONS.find((one) => one === row.guardrailAction);
            if (strictest !== undefined)
              counts.add(strictest, { ...row, findings: parseFindings(row.guardrails) });
          }
          return { next: slice.next, looked: slice.calls.length };
        });
        return { result: showCounts(counts), resultInfo: { cursor } };
      },
    }),
    defineRoute({
      ...common,
      method: "POST",
      effect: "action",
      // What was found does not belong in the audit log.
      changesNothing: true,
      path: `${ACCOUNT_GUARDRAILS}/try/calls`,
      summary:
        "What rules would have done with stored calls, newest first: how many, by rule, and which, never their texts. The filters of the list of calls.",
      body: z.strictObject({ rules: guardrailRules }),
      maxBodyBytes: 1024 * 1024,
      result: tried,
      handler: async ({ params, query: wanted, rawQuery, principal, body, signal }) => {
        const accountId = params.account_id;
        const scan = selectionOf(accountId, wanted, rawQuery, principal);
        const trial = await CallTrial.begin(body.rules, wanted.samples);
        const search = (call: ScannedCall) =>
          new Promise<void>((done, fail) =>
            // The event loop has other work, and other accounts have calls to search.
            longBodies.begin(accountId, () => {
              try {
                trial.add(call);
                done();
              } catch (error) {
                fail(error instanceof Error ? error : new Error(String(error)));
              }
            }),
          );
        const cursor = await eachSlice(wanted, BODIES_AT_ONCE, signal, async (cursorNow, limit) => {
          const slice = await reads.scan({
            ...scan,
            cursor: cursorNow,
            limit,
            previewLength: 0,
            withBodies: true,
          });
          for (const call of slice.calls) {
            if (signal.aborted) break;
            await search(call);
          }
          return { next: slice.next, looked: slice.calls.length };
        });
        const { calls, incomplete } = trial;
        return { result: { calls, incomplete, ...showCounts(trial.counts) }, resultInfo: { cursor } };
      },
    }),
  ];
}

function selectionOf(accountId: string, wanted: Query, rawQuery: URLSearchParams, principal: Principal) {
  requireCursor(wanted.cursor);
  return toScan(accountId, wanted, rawQuery, principal, Object.keys(query.shape));
}

/** Reads slice after slice until the request has had its part; returns the cursor with which another one continues. */
async function eachSlice(
  { cursor: given = null, limit }: { readonly cursor?: string | null | undefined; readonly limit: number },
  atOnce: number,
  signal: AbortSignal,
  read: (
    cursor: string | null,
    limit: number,
  ) => Promise<{ readonly next: string | null; readonly looked: number }>,
): Promise<string | null> {
  let cursor = given;
  let looked = 0;
  let takenMs = 0;
  do {
    const startedAt = performance.now();
    const slice = await read(cursor, Math.min(atOnce, limit - looked));
    takenMs += Math.min(performance.now() - startedAt, MAX_PIECE_MS);
    looked += slice.looked;
    cursor = slice.next;
  } while (cursor !== null && looked < limit && takenMs < MAX_TAKEN_MS && !signal.aborted);
  return cursor;
}

function parseFindings(json: string | null): Finding[] {
  return json === null ? [] : (JSON.parse(json) as Finding[]);
}

function showCounts({ actions, rules, samples }: FindingCounts): z.output<typeof found> {
  return {
    ...actions,
    rules: [...rules],
    samples: samples.map(({ id, gatewayId, createdAt, action: taken, findings }) => ({
      id,
      gateway_id: gatewayId,
      created_at: new Date(createdAt).toISOString(),
      action: taken,
      findings: [...findings],
    })),
  };
}
