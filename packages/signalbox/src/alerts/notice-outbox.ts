/**
 * Notices on their way. A notice is written in the transaction that changes the state of its rule, and sent afterwards.
 *
 * Invariants:
 * 1. Before an attempt, its process moves the time of the next one behind the longest attempt. Of several nodes, one makes the attempt.
 * 2. If the process is killed during an attempt, the notice is sent again at that time, by any node and with the same id: at least once, and a
 *    receiver can recognise a repetition.
 * 3. Accounts take turns, and share the places for attempts: receivers that do not answer delay the notices of their own account only.
 */
import type { Clock } from "../core/clock.ts";
import { overloaded } from "../core/overload.ts";
import { SharedPlaces } from "../core/shared-pool.ts";
import { sql } from "../core/sql.ts";
import { ulid } from "../core/ulid.ts";
import type { Database, Queryable } from "../database/database.ts";
import { OutgoingWebhookError, type OutgoingSender } from "../outgoing/index.ts";
import type { Logger } from "../telemetry/logger.ts";
import { noticeBody, type NoticeKind } from "./alert-notice.ts";
import type { AlertRule } from "./alert-rule.ts";
import type { AlertRules } from "./alert-rules.ts";

export interface NoticeOutboxParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly rules: AlertRules;
  readonly outgoing: OutgoingSender;
}

export interface NoticeRow {
  readonly id: string;
  readonly account_id: string;
  readonly rule_id: string;
  readonly receiver: number;
  readonly kind: NoticeKind;
  readonly body: string;
  readonly attempts: number;
  readonly next_at: number | null;
  readonly delivered_at: number | null;
  readonly problem: string | null;
  readonly created_at: number;
}

/** Seconds until the next attempt; after the last one the notice is given up, about ten hours after the first. */
const DELAYS_S = [5, 30, 120, 600, 1800, 3600, 7200, 21_600];
/** Longer than an attempt, which has 10 s. */
const CLAIM_MS = 30_000;
const KEPT_NOTICES = 100;
/** Attempts at the same time, of all accounts. */
const MAX_ATTEMPTS = 20;
/** Due notices that are looked at together: more than can be sent, because an account may have used up its places. */
const BATCH = 100;
/** Of one account. */
const MAX_WAITING_TESTS = 50;
/** For all failures without a response. The log has the cause. */
const UNREACHABLE = "the receiver did not answer, or is not at a public address";

export class NoticeOutbox {
  readonly #parts: NoticeOutboxParts;
  readonly #places = new SharedPlaces(MAX_ATTEMPTS);
  /** Those under way, by notice. */
  readonly #attempts = new Map<string, Promise<void>>();
  /** Looks for due notices that are under way. */
  readonly #looks = new Set<Promise<void>>();
  /** Notices are due that had no place. */
  #isBehind = false;
  #isClosed = false;

  constructor(parts: NoticeOutboxParts) {
    this.#parts = parts;
  }

  /** Writes the notice to each receiver of the rule; returns their ids. */
  async add(tx: Queryable, rule: AlertRule, kind: NoticeKind): Promise<string[]> {
    const now = this.#parts.clock.now();
    const ids: string[] = [];
    for (const [i, receiver] of rule.settings.receivers.entries()) {
      const id = `msg_${ulid(now)}`;
      ids.push(id);
      await tx.run(
        sql`INSERT INTO alert_notice (id, account_id, rule_id, receiver, kind, body, attempts, next_at, created_at)
            VALUES (${id}, ${rule.accountId}, ${rule.id}, ${i}, ${kind}, ${noticeBody(receiver, kind, rule, now)}, 0, ${now}, ${now})`,
      );
    }
    await tx.run(
      sql`DELETE FROM alert_notice WHERE rule_id = ${rule.id} AND next_at IS NULL AND id NOT IN
            (SELECT id FROM alert_notice WHERE rule_id = ${rule.id} ORDER BY id DESC LIMIT ${KEPT_NOTICES})`,
    );
    return ids;
  }

  /** Throws when so many test notices of the account have not been sent that another one would only make the queue longer. */
  async addTest(tx: Queryable, rule: AlertRule): Promise<string[]> {
    const waiting = await tx.get<{ count: number }>(
      sql`SELECT COUNT(*) AS count FROM alert_notice
          WHERE account_id = ${rule.accountId} AND kind = 'test' AND next_at IS NOT NULL`,
    );
    if ((waiting?.count ?? 0) >= MAX_WAITING_TESTS) {
      throw overloaded(`${MAX_WAITING_TESTS} test notices of this account are waiting for their receivers`);
    }
    return this.add(tx, rule, "test");
  }

  /** Newest first. */
  list(ruleId: string): Promise<NoticeRow[]> {
    return this.#parts.database.all<NoticeRow>(
      sql`SELECT * FROM alert_notice WHERE rule_id = ${ruleId} ORDER BY id DESC LIMIT ${KEPT_NOTICES}`,
    );
  }

  /** Sends what is due and has a place, and then, without the caller, what has none yet. Resolves when the first attempts have ended. */
  async sendDue(): Promise<void> {
    if (this.#isClosed) return;
    const look = this.#findDue();
    this.#looks.add(look);
    await look.finally(() => this.#looks.delete(look));
  }

  /** Sends what is due. Resolves when these notices have been attempted, or wait for a place. */
  async send(ids: readonly string[]): Promise<void> {
    await this.sendDue();
    // Another look may have found them first.
    await Promise.all(ids.map((id) => this.#attempts.get(id) ?? Promise.resolve()));
  }

  /** Begins nothing further; resolves when what is under way has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#looks);
    await Promise.allSettled(this.#attempts.values());
  }

  async #findDue(): Promise<void> {
    const due = await this.#parts.database.all<NoticeRow>(
      sql`SELECT * FROM
            (SELECT alert_notice.*, ROW_NUMBER() OVER (PARTITION BY account_id ORDER BY next_at, id) AS turn
             FROM alert_notice WHERE next_at <= ${this.#parts.clock.now()}) AS waiting
          ORDER BY turn, next_at LIMIT ${BATCH}`,
    );
    const sending = due.map((notice) => this.#start(notice)).filter((attempt) => attempt !== null);
    this.#isBehind = sending.length < due.length || due.length === BATCH;
    await Promise.all(sending);
  }

  /** Null when there is no place for an attempt of the account. */
  #start(notice: NoticeRow): Promise<void> | null {
    const running = this.#attempts.get(notice.id);
    if (running !== undefined) return running;
    const place = this.#places.shareOf(notice.account_id);
    if (this.#isClosed || !place.take()) return null;
    const attempt = this.#sendOne(notice).finally(() => {
      place.release();
      this.#attempts.delete(notice.id);
      if (this.#isBehind) this.#catchUp();
    });
    this.#attempts.set(notice.id, attempt);
    return attempt;
  }

  #catchUp(): void {
    this.#isBehind = false;
    this.sendDue().catch((error: unknown) =>
      // The next check of the rules sends them.
      this.#parts.logger.error({ err: error }, "notices of alerts could not be sent; trying again"),
    );
  }

  async #sendOne(notice: NoticeRow): Promise<void> {
    if (!(await this.#claim(notice))) return;
    const { rules, outgoing, clock, logger } = this.#parts;
    const rule = rules.byId(notice.rule_id);
    const target = rule === undefined ? null : rules.open(rule, notice.receiver);
    if (target === null) {
      await this.#finish(notice, null, null, "the receiver no longer exists, or cannot be decrypted");
      return;
    }
    try {
      await outgoing.send({ id: notice.id, url: target.url, body: notice.body, secret: target.secret });
      await this.#finish(notice, null, clock.now(), null);
    } catch (error) {
      const status = error instanceof OutgoingWebhookError ? error.status : null;
      // Whether a name is unknown, private or silent would tell an account which names the network of the server has.
      const problem = status === null || !(error instanceof Error) ? UNREACHABLE : error.message;
      const isRetryable = status === null || !(error instanceof OutgoingWebhookError) || error.retryable;
      const delayS = isRetryable ? DELAYS_S[notice.attempts] : undefined;
      if (delayS === undefined) {
        logger.warn({ alert: notice.rule_id, err: error }, "a notice of an alert could not be delivered");
      }
      await this.#finish(notice, delayS === undefined ? null : clock.now() + delayS * 1000, null, problem);
    }
  }

  /** False when another node makes the attempt. */
  async #claim({ id, attempts, next_at: dueAt }: NoticeRow): Promise<boolean> {
    const { changes } = await this.#parts.database.run(
      sql`UPDATE alert_notice SET attempts = attempts + 1, next_at = ${this.#parts.clock.now() + CLAIM_MS}
          WHERE id = ${id} AND attempts = ${attempts} AND next_at = ${dueAt}`,
    );
    return changes > 0;
  }

  async #finish(
    { id }: NoticeRow,
    nextAt: number | null,
    deliveredAt: number | null,
    problem: string | null,
  ): Promise<void> {
    await this.#parts.database.run(
      sql`UPDATE alert_notice SET next_at = ${nextAt}, delivered_at = ${deliveredAt}, problem = ${problem}
          WHERE id = ${id}`,
    );
  }
}
