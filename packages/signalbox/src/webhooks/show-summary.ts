/** Counts of deliveries as JSON of the management interface. */
import { z } from "zod";
import { isoTime } from "../core/iso-time.ts";
import type { DeliverySummary } from "./delivery-log.ts";

const counts = {
  accepted: z.int(),
  duplicate: z.int(),
  rejected: z.int(),
  failed: z.int(),
  failing: z.int(),
  unlisted_rejected: z.int(),
};

const sourceCounts = z.object({
  source: z.string(),
  ...counts,
  last_received_at: z.iso.datetime(),
  last_failed_at: z.iso.datetime().nullable(),
  last_error: z.string().nullable(),
});

export const summaryResult = z.object({
  since: z.iso.datetime({ offset: true }).nullable(),
  until: z.iso.datetime({ offset: true }).nullable(),
  totals: z.object(counts),
  sources: z.array(sourceCounts),
});

type Counts = { -readonly [Name in keyof typeof counts]: number };

export interface SummaryContext {
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  /** By source: of the last delivery that fails. */
  readonly lastErrors: ReadonlyMap<string, string>;
  /** Rejected deliveries that are counted and not listed yet. */
  unlisted(source: string): number;
}

export function showSummary(
  { byStatus, unresolved, alsoRejected }: DeliverySummary,
  { since, until, lastErrors, unlisted }: SummaryContext,
): z.input<typeof summaryResult> {
  const names = [...new Set(byStatus.map(({ source }) => source))];
  const sources = names.map((source) => {
    const own = byStatus.filter((count) => count.source === source);
    const countOf = (status: string) => own.find((count) => count.status === status)?.count ?? 0;
    const failed = own.find(({ status }) => status === "failed");
    return {
      source,
      accepted: countOf("accepted"),
      duplicate: countOf("duplicate"),
      rejected: countOf("rejected"),
      failed: countOf("failed"),
      failing: unresolved.find((count) => count.source === source)?.count ?? 0,
      unlisted_rejected: (alsoRejected.get(source) ?? 0) + unlisted(source),
      last_received_at: isoTime(Math.max(...own.map(({ lastAt }) => lastAt))),
      last_failed_at: failed === undefined ? null : isoTime(failed.lastAt),
      last_error: lastErrors.get(source) ?? null,
    };
  });
  return { since: since ?? null, until: until ?? null, totals: sum(sources), sources };
}

function sum(sources: readonly Counts[]): Counts {
  const totals: Counts = {
    accepted: 0,
    duplicate: 0,
    rejected: 0,
    failed: 0,
    failing: 0,
    unlisted_rejected: 0,
  };
  for (const source of sources)
    for (const name of Object.keys(totals) as (keyof Counts)[]) totals[name] += source[name];
  return totals;
}
