/**
 * Spend limits: money is reserved before a call goes upstream and settled when its cost is known, so calls that run at the same time
 * cannot together spend what only one of them may.
 *
 * Invariants:
 * 1. Reserving is one synchronous step over all rules that apply: either every bucket takes it or none does.
 * 2. A call reserves the price of its input and of the most output it can ask for. Where it names no output limit, the reservation is
 *    an assumption; such a call may run when nothing else does, even if the assumption does not fit, or a small limit would let
 *    nothing through. Only then can a limit be passed, by one call.
 * 3. Calls whose price is unknown neither reserve nor count: there is no number to compare.
 * 4. Settled amounts are written to the database every second and when the service stops; what `kill -9` can lose is that second.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import type { Database } from "../../storage/ports/database.ts";
import { sql } from "../../storage/ports/sql.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { SpendRule } from "../settings/gateway-settings.ts";
import { SpendBucket } from "./spend-bucket.ts";

export interface SpendRequest {
  readonly gateway: Gateway;
  readonly provider: string;
  readonly model: string;
  /** Flat JSON object, serialised. */
  readonly metadata: string | null;
  /** Dollars; null when the price is unknown. */
  readonly estimate: number | null;
  /** Whether the estimate is an upper bound. */
  readonly isBounded: boolean;
}

/** Money held for one running call. */
export interface SpendReservation {
  /** Replaces the reservation by what the call really cost; must be called exactly once. */
  settle(cost: number | null): void;
}

const FLUSH_MS = 1000;
const MICRO = 1_000_000;

interface Unwritten {
  readonly gateway: Gateway;
  readonly bucket: string;
  readonly slot: number;
  amount: number;
}

export class SpendLimits {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #buckets = new Map<string, SpendBucket>();
  readonly #unwritten = new Map<string, Unwritten>();
  #timer: NodeJS.Timeout | undefined;

  constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  async start(gateways: { find(accountId: string, id: string): Gateway | undefined }): Promise<void> {
    const rows = await this.#database.all<SpendRow>(sql`SELECT * FROM gateway_spend`);
    for (const row of rows) {
      const gateway = gateways.find(row.account_id, row.gateway_id);
      const ruleId = row.bucket.split(" ", 1)[0];
      const rule = gateway?.settings.spend_limits?.rules.find(({ id }) => id === ruleId);
      if (gateway === undefined || rule === undefined) continue;
      this.#bucketOf(gateway, rule, row.bucket).add(row.slot_start, row.micro_dollars);
    }
    // What could not be written is a matter of the next flush.
    this.#timer = setInterval(() => void this.flush().catch(() => undefined), FLUSH_MS).unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.flush();
  }

  /** Null when no rule applies; throws `gateway_spend_limit` when one is exhausted. */
  reserve(request: SpendRequest): SpendReservation | null {
    const limits = request.gateway.settings.spend_limits;
    if (limits === null || !limits.enabled || limits.rules.length === 0) return null;
    const now = this.#clock.now();
    const amount = request.estimate === null ? 0 : Math.ceil(request.estimate * MICRO);
    const metadata = parseMetadata(request.metadata);
    const held: { key: string; bucket: SpendBucket }[] = [];
    for (const rule of limits.rules) {
      const key = rule.enabled ? bucketKey(rule, request, metadata) : null;
      if (key === null) continue;
      const bucket = this.#bucketOf(request.gateway, rule, key);
      this.#check(rule, bucket, amount, request, now);
      held.push({ key, bucket });
    }
    if (held.length === 0) return null;
    for (const { bucket } of held) bucket.reserve(amount);
    return {
      settle: (cost) => {
        for (const { key, bucket } of held) {
          bucket.release(amount);
          if (cost !== null && cost > 0) this.#spend(request.gateway, key, bucket, Math.ceil(cost * MICRO));
        }
      },
    };
  }

  async flush(): Promise<void> {
    const entries = [...this.#unwritten.values()];
    if (entries.length === 0) return;
    this.#unwritten.clear();
    await this.#database.transaction(async (tx) => {
      for (const { gateway, bucket, slot, amount } of entries) {
        await tx.run(
          sql`INSERT INTO gateway_spend (account_id, gateway_id, bucket, slot_start, micro_dollars)
              SELECT account_id, id, CAST(${bucket} AS TEXT), CAST(${slot} AS BIGINT), CAST(${amount} AS BIGINT) FROM gateway
              WHERE account_id = ${gateway.accountId} AND id = ${gateway.id}
              ON CONFLICT (account_id, gateway_id, bucket, slot_start)
              DO UPDATE SET micro_dollars = gateway_spend.micro_dollars + excluded.micro_dollars`,
        );
      }
      // Windows are at most a year; what is older counts for no rule.
      await tx.run(
        sql`DELETE FROM gateway_spend WHERE slot_start < ${this.#clock.now() - 2 * 366 * 86_400_000}`,
      );
    });
  }

  #check(rule: SpendRule, bucket: SpendBucket, amount: number, request: SpendRequest, now: number): void {
    if (request.estimate === null) return;
    const limit = rule.limit * MICRO;
    const spent = bucket.spent(now);
    const fits = spent + bucket.reserved + amount <= limit;
    const mayRunAlone = !request.isBounded && bucket.reserved === 0 && spent < limit;
    if (fits || mayRunAlone) return;
    const retryAfter = Math.ceil((spent < limit ? 1000 : bucket.msUntilRelief(now)) / 1000);
    throw new SignalboxError("gateway_spend_limit", {
      message: `Spend limit exceeded: rule ${rule.id} allows $${rule.limit} per ${rule.window} s (${rule.technique}), provider ${request.provider}, model ${request.model}`,
      headers: { "retry-after": String(retryAfter) },
    });
  }

  #spend(gateway: Gateway, key: string, bucket: SpendBucket, amount: number): void {
    const slot = bucket.slotOf(this.#clock.now());
    bucket.add(slot, amount);
    const id = `${gateway.accountId}/${gateway.id}/${slot}/${key}`;
    const waiting = this.#unwritten.get(id);
    if (waiting === undefined) this.#unwritten.set(id, { gateway, bucket: key, slot, amount });
    else waiting.amount += amount;
  }

  #bucketOf(gateway: Gateway, rule: SpendRule, key: string): SpendBucket {
    const id = `${gateway.accountId}/${gateway.id}/${key} ${rule.window} ${rule.technique}`;
    let bucket = this.#buckets.get(id);
    if (bucket === undefined) {
      bucket = new SpendBucket(rule.window * 1000, rule.technique);
      this.#buckets.set(id, bucket);
    }
    return bucket;
  }
}

type MetadataValue = string | number | boolean | null;

interface SpendRow {
  readonly account_id: string;
  readonly gateway_id: string;
  readonly bucket: string;
  readonly slot_start: number;
  readonly micro_dollars: number;
}

/** Which bucket of the rule a call belongs to; null when the rule does not speak of it. */
function bucketKey(
  rule: SpendRule,
  request: SpendRequest,
  metadata: Readonly<Record<string, MetadataValue>>,
): string | null {
  if (rule.provider !== undefined && !rule.provider.values.includes(request.provider)) return null;
  if (rule.model !== undefined && !rule.model.values.includes(request.model)) return null;
  const parts: unknown[] = [];
  for (const [name, condition] of Object.entries(rule.metadata ?? {})) {
    const value = Object.hasOwn(metadata, name) ? metadata[name] : undefined;
    if (condition.mode === "partition") parts.push([name, value ?? null]);
    else if (value === undefined || !condition.values.includes(String(value))) return null;
  }
  return parts.length === 0 ? rule.id : `${rule.id} ${JSON.stringify(parts)}`;
}

function parseMetadata(text: string | null): Readonly<Record<string, MetadataValue>> {
  return text === null ? {} : (JSON.parse(text) as Record<string, MetadataValue>);
}
