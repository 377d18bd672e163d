/**
 * Spend limits. The cost of a call is reserved before it goes upstream and settled when it is known, so that simultaneous calls cannot
 * together exceed a limit.
 *
 * Invariants:
 * 1. Reserving is one synchronous step over all rules that apply: every bucket accepts the amount, or none is changed.
 * 2. A call reserves the price of its input and of the largest output it can request. If it sets no output limit, the reservation is an
 *    assumption. Such a call may run while no other does, even if the assumption exceeds the limit, because a small limit would
 *    otherwise refuse every call. Only then can one call exceed a limit.
 * 3. Calls with an unknown price neither reserve nor count.
 * 4. Settled amounts are written to the database every second and when the service stops; `kill -9` loses at most that second. Amounts
 *    that could not be written are kept for the next attempt.
 * 5. Amounts of a deleted gateway never count for a later gateway of the same name, including amounts of running calls and unwritten ones.
 * See docs/decisions/0013.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import type { Database } from "../../database/database.ts";
import { sql } from "../../core/sql.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { SpendRule } from "../settings/gateway-settings.ts";
import { RuleBuckets } from "./rule-buckets.ts";
import type { SpendBucket } from "./spend-bucket.ts";

export interface SpendRequest {
  readonly gateway: Gateway;
  readonly provider: string;
  readonly model: string;
  /** Serialised flat JSON object. */
  readonly metadata: string | null;
  /** Dollars; null when the price is unknown. */
  readonly estimate: number | null;
  /** Whether the estimate is an upper bound. */
  readonly isBounded: boolean;
}

/** The amount reserved for one running call. */
export interface SpendReservation {
  /** Replaces the reservation by the actual cost; must be called exactly once. */
  settle(cost: number | null): void;
}

export interface SpendLimitsParts {
  readonly database: Database;
  readonly clock: Clock;
  /** Called when amounts could not be written; the write is repeated. */
  readonly onError: (error: unknown) => void;
}

const FLUSH_MS = 1000;
/** How often rows of expired windows are deleted. They have no effect, so the interval only bounds their number. */
const CLEAN_MS = 60_000;
const MICRO = 1_000_000;

interface Unwritten {
  readonly gateway: Gateway;
  readonly rules: RuleBuckets;
  readonly bucket: string;
  readonly slot: number;
  readonly endsAt: number;
  amount: number;
}

interface Placement {
  readonly rules: RuleBuckets;
  readonly name: string;
  readonly bucket: SpendBucket;
}

export class SpendLimits {
  readonly #parts: SpendLimitsParts;
  /** By gateway, then by rule id, window and technique. */
  readonly #gateways = new Map<string, Map<string, RuleBuckets>>();
  #unwritten = new Map<string, Unwritten>();
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> | null = null;
  #cleanedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: SpendLimitsParts) {
    this.#parts = parts;
  }

  async start(gateways: { find(accountId: string, id: string): Gateway | undefined }): Promise<void> {
    const now = this.#parts.clock.now();
    await this.#removeEnded(now);
    const rows = await this.#parts.database.all<SpendRow>(sql`SELECT * FROM gateway_spend`);
    const misplaced: SpendRow[] = [];
    for (const row of rows) {
      const gateway = gateways.find(row.account_id, row.gateway_id);
      const ruleId = row.bucket.split(" ", 1)[0];
      const rule = gateway?.settings.spend_limits?.rules.find(({ id }) => id === ruleId);
      if (gateway === undefined || rule === undefined) continue;
      const rules = this.#rulesOf(gateway, rule);
      const { name, bucket } = rules.restore(row.bucket, now);
      const isAhead = row.slot_start > bucket.slotOf(now);
      if (isAhead || bucket.endOf(row.slot_start) <= now) misplaced.push(row);
      else bucket.add(row.slot_start, row.micro_dollars);
      // The clock was ahead when the amount was written and has been corrected: the amount counts from now on.
      if (isAhead) this.#spend(gateway, { rules, name, bucket }, row.micro_dollars);
    }
    await this.#remove(misplaced);
    this.#sweep(now);
    this.#timer = setInterval(() => {
      // `flush` reports the error, and the next interval repeats the write.
      this.flush().catch(() => undefined);
    }, FLUSH_MS).unref();
  }

  /** Rejects when the remaining amounts could not be written. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    // That flush reports its error; the next one repeats the write.
    await this.#flushing?.catch(() => undefined);
    await this.flush();
  }

  /** Null when no rule applies; throws `gateway_spend_limit` when one is exhausted. */
  reserve(request: SpendRequest): SpendReservation | null {
    const limits = request.gateway.settings.spend_limits;
    if (limits === null || !limits.enabled || limits.rules.length === 0) return null;
    const now = this.#parts.clock.now();
    const amount = request.estimate === null ? 0 : Math.ceil(request.estimate * MICRO);
    const metadata = parseMetadata(request.metadata);
    const held: Placement[] = [];
    let refusal: Refusal | null = null;
    for (const rule of limits.rules) {
      const match = rule.enabled ? matchRule(rule, request, metadata) : null;
      if (match === null) continue;
      const rules = this.#rulesOf(request.gateway, rule);
      const { name, bucket } = rules.find(match.partition, now);
      const refused = refusalOf(rule, bucket, amount, request, now);
      // Of several exhausted rules, `retry-after` follows the one with the longest wait.
      if (refused !== null && refused.waitMs > (refusal?.waitMs ?? -1)) refusal = refused;
      held.push({ rules, name, bucket });
    }
    if (refusal !== null) throw toError(refusal, request);
    if (held.length === 0) return null;
    for (const { bucket } of held) bucket.reserve(amount);
    return {
      settle: (cost) => {
        for (const placement of held) {
          placement.bucket.release(amount);
          if (cost !== null && cost > 0) this.#spend(request.gateway, placement, Math.ceil(cost * MICRO));
        }
      },
    };
  }

  /** The gateway was deleted; the database deleted its rows. */
  forget(gateway: Gateway): void {
    const key = keyOf(gateway);
    for (const rules of this.#gateways.get(key)?.values() ?? []) rules.isForgotten = true;
    this.#gateways.delete(key);
    for (const [id, entry] of this.#unwritten) if (keyOf(entry.gateway) === key) this.#unwritten.delete(id);
  }

  /** Writes the amounts settled since the last flush. One flush runs at a time; calls during a flush share it. */
  flush(): Promise<void> {
    this.#flushing ??= this.#flush().finally(() => (this.#flushing = null));
    return this.#flushing;
  }

  async #flush(): Promise<void> {
    const now = this.#parts.clock.now();
    const taken = this.#unwritten;
    this.#unwritten = new Map();
    try {
      if (taken.size > 0) await this.#write([...taken.values()]);
      if (Math.abs(now - this.#cleanedAt) >= CLEAN_MS) {
        await this.#removeEnded(now);
        this.#sweep(now);
      }
    } catch (error) {
      this.#parts.onError(error);
      throw error;
    }
  }

  async #write(entries: readonly Unwritten[]): Promise<void> {
    try {
      await this.#parts.database.transaction(async (tx) => {
        for (const { gateway, bucket, slot, endsAt, amount } of entries) {
          // `created_at` identifies the gateway that spent the amount; a later one of the same name differs in it.
          await tx.run(
            sql`INSERT INTO gateway_spend (account_id, gateway_id, bucket, slot_start, ends_at, micro_dollars)
                SELECT account_id, id, CAST(${bucket} AS TEXT), CAST(${slot} AS BIGINT), CAST(${endsAt} AS BIGINT),
                       CAST(${amount} AS BIGINT)
                FROM gateway WHERE account_id = ${gateway.accountId} AND id = ${gateway.id} AND created_at = ${gateway.createdAt}
                ON CONFLICT (account_id, gateway_id, bucket, slot_start)
                DO UPDATE SET micro_dollars = gateway_spend.micro_dollars + excluded.micro_dollars,
                              ends_at = excluded.ends_at`,
          );
        }
      });
    } catch (error) {
      for (const entry of entries) this.#keep(entry);
      throw error;
    }
  }

  async #removeEnded(now: number): Promise<void> {
    await this.#parts.database.run(sql`DELETE FROM gateway_spend WHERE ends_at <= ${now}`);
    this.#cleanedAt = now;
  }

  async #remove(rows: readonly SpendRow[]): Promise<void> {
    if (rows.length === 0) return;
    await this.#parts.database.transaction(async (tx) => {
      for (const row of rows) {
        await tx.run(
          sql`DELETE FROM gateway_spend WHERE account_id = ${row.account_id} AND gateway_id = ${row.gateway_id}
              AND bucket = ${row.bucket} AND slot_start = ${row.slot_start}`,
        );
      }
    });
  }

  #sweep(now: number): void {
    for (const [key, ofGateway] of this.#gateways) {
      for (const [id, rules] of ofGateway) {
        rules.sweep(now);
        if (rules.size === 0) ofGateway.delete(id);
      }
      if (ofGateway.size === 0) this.#gateways.delete(key);
    }
  }

  #spend(gateway: Gateway, { rules, name, bucket }: Placement, amount: number): void {
    const slot = bucket.slotOf(this.#parts.clock.now());
    bucket.add(slot, amount);
    this.#keep({ gateway, rules, bucket: name, slot, endsAt: bucket.endOf(slot), amount });
  }

  #keep(entry: Unwritten): void {
    if (entry.rules.isForgotten) return;
    const id = `${keyOf(entry.gateway)}/${entry.slot}/${entry.bucket}`;
    const waiting = this.#unwritten.get(id);
    if (waiting === undefined) this.#unwritten.set(id, entry);
    else waiting.amount += entry.amount;
  }

  #rulesOf(gateway: Gateway, rule: SpendRule): RuleBuckets {
    const key = keyOf(gateway);
    let ofGateway = this.#gateways.get(key);
    if (ofGateway === undefined) {
      ofGateway = new Map();
      this.#gateways.set(key, ofGateway);
    }
    const id = `${rule.id} ${rule.window} ${rule.technique}`;
    let rules = ofGateway.get(id);
    if (rules === undefined) {
      rules = new RuleBuckets(rule);
      ofGateway.set(id, rules);
    }
    return rules;
  }
}

interface Refusal {
  readonly rule: SpendRule;
  /** Until the call may pass; infinite when waiting does not help. */
  readonly waitMs: number;
}

/** The shortest wait: running calls may end at any moment, usually below their reservation. */
const SOON_MS = 1000;

/** Null when the amount fits. */
function refusalOf(
  rule: SpendRule,
  bucket: SpendBucket,
  amount: number,
  request: SpendRequest,
  now: number,
): Refusal | null {
  if (request.estimate === null) return null;
  const limit = rule.limit * MICRO;
  const spent = bucket.spent(now);
  const fits = spent + bucket.reserved + amount <= limit;
  const mayRunAlone = !request.isBounded && bucket.reserved === 0 && spent < limit;
  if (fits || mayRunAlone) return null;
  // A call without an output limit may run as soon as anything is left, others when their whole amount fits.
  const allowed = request.isBounded ? limit - amount : Math.ceil(limit) - 1;
  const waitMs = allowed < 0 ? Number.POSITIVE_INFINITY : bucket.msUntilSpentIs(allowed, now);
  return { rule, waitMs: Math.max(waitMs, SOON_MS) };
}

function toError({ rule, waitMs }: Refusal, request: SpendRequest): SignalboxError {
  const canWait = Number.isFinite(waitMs);
  const why = canWait ? "" : "; this call alone may cost more than that";
  return new SignalboxError("gateway_spend_limit", {
    message: `Spend limit exceeded: rule ${rule.id} allows $${rule.limit} per ${rule.window} s (${rule.technique}), provider ${request.provider}, model ${request.model}${why}`,
    ...(canWait ? { headers: { "retry-after": String(Math.ceil(waitMs / 1000)) } } : {}),
  });
}

type MetadataValue = string | number | boolean | null;

interface SpendRow {
  readonly account_id: string;
  readonly gateway_id: string;
  readonly bucket: string;
  readonly slot_start: number;
  readonly micro_dollars: number;
}

/** The partition of the rule that the call belongs to; null when the rule does not apply to the call. */
function matchRule(
  rule: SpendRule,
  request: SpendRequest,
  metadata: Readonly<Record<string, MetadataValue>>,
): { readonly partition: string | null } | null {
  if (rule.provider !== undefined && !rule.provider.values.includes(request.provider)) return null;
  if (rule.model !== undefined && !rule.model.values.includes(request.model)) return null;
  const parts: unknown[] = [];
  for (const [name, condition] of Object.entries(rule.metadata ?? {})) {
    const value = Object.hasOwn(metadata, name) ? metadata[name] : undefined;
    if (condition.mode === "partition") parts.push([name, value ?? null]);
    else if (value === undefined || !condition.values.includes(String(value))) return null;
  }
  return { partition: parts.length === 0 ? null : JSON.stringify(parts) };
}

function parseMetadata(text: string | null): Readonly<Record<string, MetadataValue>> {
  return text === null ? {} : (JSON.parse(text) as Record<string, MetadataValue>);
}

function keyOf(gateway: Gateway): string {
  return `${gateway.accountId}/${gateway.id}`;
}
