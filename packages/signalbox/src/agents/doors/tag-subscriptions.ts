/**
 * Delivers changes of tags to the instances that subscribe to them (`agents.tagChanges`), as events of the source `tags`.
 *
 * Invariants:
 * 1. An instance receives changes in the order in which they were made, one at a time.
 * 2. Each change has its effect once: the position is stored after the delivery, and the instance's ledger recognises a change that is
 *    delivered again after a crash between the two.
 * 3. A change that the instance refuses is given up after the last attempt, with an error in the log: one bad event must not block all later
 *    ones. A new subscription starts with the next change, not with the history.
 * 4. In a cluster, the node that owns the instance follows the changes. While the instance moves, two nodes may follow: the ledger recognises what
 *    both deliver, and a stored position is never replaced by an earlier one.
 * 5. Failures of the storage and overloaded instances are waited for without limit; the subscription then continues at its position.
 */
import { SignalboxError } from "@signalbox/protocol";
import { setTimeout as sleep } from "node:timers/promises";
import { fullJitterDelay, retry } from "../../core/retry.ts";
import type { Database } from "../../database/database.ts";
import { sql } from "../../core/sql.ts";
import type { TagChange, TagFeed } from "../../contracts/tag-feed.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { AgentDeliveries, DeliveryTarget } from "../../contracts/agent-deliveries.ts";
import type { Placement } from "../placement/placement.ts";
import type { WebhookEvent } from "../../contracts/webhook-event.ts";

export interface TagSubscription {
  /** Kebab-case name of the agent's class. */
  readonly agent: string;
  readonly name: string;
  /** The account of the tags and of the instance. */
  readonly account: string;
}

export interface TagSubscriptionParts {
  readonly subscriptions: readonly TagSubscription[];
  readonly feed: TagFeed;
  readonly deliveries: AgentDeliveries;
  readonly placement: Pick<Placement, "find">;
  readonly database: Database;
  readonly logger: Logger;
}

const ATTEMPTS = { maxAttempts: 8, baseDelayMs: 200, maxDelayMs: 10_000 };
/** Between attempts that are not limited in number. */
const PAUSES = { baseDelayMs: 200, maxDelayMs: 30_000 };
/** How often a node looks whether a subscribing instance belongs to it. */
const OWNER_CHECK_MS = 1000;

export class TagSubscriptions {
  readonly #parts: TagSubscriptionParts;
  readonly #stopping = new AbortController();
  #running: Promise<unknown> = Promise.resolve();

  constructor(parts: TagSubscriptionParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#running = Promise.all(this.#parts.subscriptions.map((subscription) => this.#run(subscription)));
  }

  /** Resolves after the delivery in progress. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(subscription: TagSubscription): Promise<void> {
    const progress: Progress = { failures: 0 };
    while (!this.#stopping.signal.aborted) {
      try {
        if (await this.#isHere(subscription)) await this.#followHere(subscription, progress);
        else await this.#wait(OWNER_CHECK_MS);
      } catch (error) {
        await this.#pause(subscription, error, progress);
      }
    }
  }

  async #isHere(subscription: TagSubscription): Promise<boolean> {
    return (await this.#parts.placement.find(subscription)) === null;
  }

  /** Follows the changes until the service stops or the instance belongs to another node. */
  async #followHere(subscription: TagSubscription, progress: Progress): Promise<void> {
    const leaving = new AbortController();
    const signal = AbortSignal.any([this.#stopping.signal, leaving.signal]);
    const check = async () => {
      if (!(await this.#isHere(subscription))) leaving.abort();
    };
    // While PostgreSQL cannot be reached, nothing moves.
    const timer = setInterval(() => void check().catch(() => undefined), OWNER_CHECK_MS).unref();
    try {
      await this.#follow(subscription, await this.#position(subscription), progress, signal);
    } finally {
      clearInterval(timer);
    }
  }

  async #follow(
    subscription: TagSubscription,
    from: number,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      for await (const change of this.#parts.feed.follow(subscription.account, from, signal)) {
        if (signal.aborted) return;
        if (!(await this.#deliver(subscription, change))) return;
        await this.#store(subscription, change.position);
        progress.failures = 0;
      }
    } catch (error) {
      if (!(error instanceof SignalboxError) || error.id !== "tags_changes_expired") throw error;
      await this.#store(subscription, await this.#parts.feed.newestPosition(subscription.account));
      this.#parts.logger.error(
        { ...subscription },
        "tag changes were pruned before they could be delivered; continuing with new ones",
      );
    }
  }

  /** Reports the failure and waits, longer with each consecutive failure. */
  async #pause(subscription: TagSubscription, error: unknown, progress: Progress): Promise<void> {
    const { signal } = this.#stopping;
    if (signal.aborted) return;
    progress.failures += 1;
    this.#parts.logger.error(
      { err: error, ...subscription, failures: progress.failures },
      "a subscription to tag changes failed; retrying",
    );
    await this.#wait(fullJitterDelay(progress.failures, PAUSES));
  }

  async #wait(ms: number): Promise<void> {
    // `stop` aborts the wait.
    await sleep(ms, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
  }

  /** False when the service stops before the change was delivered. */
  async #deliver(subscription: TagSubscription, change: TagChange): Promise<boolean> {
    const { deliveries, logger } = this.#parts;
    const { signal } = this.#stopping;
    try {
      await retry(() => deliverOrThrow(deliveries, subscription, toEvent(change)), {
        ...ATTEMPTS,
        signal,
        isRetryable: (error) => !isOverloaded(error),
      });
    } catch (error) {
      if (signal.aborted) return false;
      // Neither the change nor the instance is at fault: `#run` waits and retries.
      if (isOverloaded(error)) throw error;
      logger.error(
        { err: error, ...subscription, position: change.position },
        "an agent refused a tag change; the change is skipped",
      );
    }
    return true;
  }

  async #position(subscription: TagSubscription): Promise<number> {
    const { agent, name, account } = subscription;
    const row = await this.#parts.database.get<{ position: number }>(
      sql`SELECT position FROM tag_subscription WHERE agent = ${agent} AND name = ${name} AND account_id = ${account}`,
    );
    if (row !== undefined) return row.position;
    const newest = await this.#parts.feed.newestPosition(account);
    await this.#parts.database.run(
      sql`INSERT INTO tag_subscription (agent, name, account_id, position) VALUES (${agent}, ${name}, ${account}, ${newest})
          ON CONFLICT DO NOTHING`,
    );
    // Another node may have been first.
    return this.#position(subscription);
  }

  async #store({ agent, name, account }: TagSubscription, position: number): Promise<void> {
    await this.#parts.database.run(
      sql`INSERT INTO tag_subscription (agent, name, account_id, position) VALUES (${agent}, ${name}, ${account}, ${position})
          ON CONFLICT (agent, name, account_id) DO UPDATE SET position = excluded.position
          WHERE excluded.position > tag_subscription.position`,
    );
  }
}

/** Consecutive failures of one subscription. */
interface Progress {
  failures: number;
}

/** The runtime has no room, or the instance's storage failed. */
function isOverloaded(error: unknown): boolean {
  return error instanceof SignalboxError && (error.id === "overloaded" || error.id === "stopping");
}

/** A response that is not 2xx refuses the event, like an error. */
async function deliverOrThrow(
  deliveries: AgentDeliveries,
  target: DeliveryTarget,
  event: WebhookEvent,
): Promise<void> {
  const outcome = await deliveries.deliver(target, event);
  if (outcome.kind === "answered" && (outcome.status < 200 || outcome.status > 299))
    throw new Error(`the agent answered ${outcome.status}`);
}

function toEvent(change: TagChange): WebhookEvent {
  const { type, id } = change.resource;
  const body = JSON.stringify(change);
  return {
    id: `tags:${change.accountId}:${change.position}`,
    source: "tags",
    type: "tags.changed",
    action: change.action,
    timestamp: new Date(change.changedAt).toISOString(),
    payload: JSON.parse(body),
    headers: {},
    rawBody: Buffer.from(body),
    title: `tags of ${type} ${id}: ${change.action}`,
    description: null,
    url: null,
    actor: change.actor,
  };
}
