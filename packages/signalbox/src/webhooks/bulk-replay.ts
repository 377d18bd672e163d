/**
 * Replays many failed deliveries, oldest first.
 *
 * Invariants:
 * 1. Deliveries of one instance run in their order; those of different instances run side by side, at most `BATCH`.
 * 2. One call takes a bounded time and number: it ends between two batches, and its cursor is the last delivery that was tried. A delivery that fails
 *    again is not tried twice in one pass, and is found by the next one.
 * 3. A call that breaks off in the middle has done a part of its work. The same call again finds the rest: what succeeded is marked.
 */
import type { Clock } from "../core/clock.ts";
import { storedErrorText, toStoredError } from "../core/stored-error.ts";
import type { DeliveryLog } from "./delivery-log.ts";
import { answerError, type DeliveryFilter, type DeliveryRecord } from "./delivery-record.ts";
import type { Intake } from "./intake.ts";
import type { Source } from "./source.ts";

const BATCH = 16;
/** No batch begins later than this after the call. */
const MAX_MS = 20_000;

export interface BulkReplay {
  readonly accountId: string;
  readonly filter: DeliveryFilter;
  /** Id of the last delivery that was tried. */
  readonly after: string;
  readonly limit: number;
  readonly signal: AbortSignal;
}

export interface BulkReplayParts {
  readonly sources: ReadonlyMap<string, Source>;
  readonly log: DeliveryLog;
  readonly intake: Intake;
  readonly clock: Clock;
  isReplayable(record: DeliveryRecord): boolean;
}

export interface BulkReplayResult {
  matched: number;
  replayed: number;
  failed: { readonly id: string; readonly error: string }[];
  skipped: number;
  cursor: string | null;
}

export async function replayFailed(parts: BulkReplayParts, work: BulkReplay): Promise<BulkReplayResult> {
  const { log } = parts;
  const { accountId, filter, limit, signal } = work;
  const result: BulkReplayResult = { matched: 0, replayed: 0, failed: [], skipped: 0, cursor: null };
  const startedAt = performance.now();
  let { after } = work;
  while (result.matched < limit && !signal.aborted && performance.now() - startedAt < MAX_MS) {
    const batch = await log.since(accountId, filter, after, Math.min(BATCH, limit - result.matched));
    if (batch.length === 0) return result;
    result.matched += batch.length;
    await Promise.all(byInstance(batch).map((records) => replayInOrder(parts, records, result)));
    after = batch.at(-1)?.id ?? after;
  }
  const [next] = await log.since(accountId, filter, after, 1);
  return { ...result, cursor: next === undefined ? null : after };
}

async function replayInOrder(
  { sources, log, intake, clock, isReplayable }: BulkReplayParts,
  records: readonly DeliveryRecord[],
  result: BulkReplayResult,
): Promise<void> {
  for (const { accountId, id } of records) {
    // Lists omit bodies.
    const record = await log.find(accountId, id);
    const source = sources.get(record?.source ?? "");
    if (record === undefined || source === undefined || !isReplayable(record)) {
      result.skipped += 1;
      continue;
    }
    try {
      const { outcome } = await intake.replay(source, record, false);
      if (outcome.kind === "answered" && (outcome.status < 200 || outcome.status > 299)) {
        result.failed.push({ id, error: storedErrorText(answerError(outcome)) });
        continue;
      }
      await log.markReplayed(accountId, id, clock.now());
      result.replayed += 1;
    } catch (error) {
      result.failed.push({ id, error: storedErrorText(toStoredError(error)) });
    }
  }
}

function byInstance(records: readonly DeliveryRecord[]): readonly (readonly DeliveryRecord[])[] {
  return [...Map.groupBy(records, ({ agent, instance }) => `${agent}\0${instance}`).values()];
}
