/** The alerts area: rules on what the other areas report, and notices to their receivers. */
import type { AreaModule } from "../area-module.ts";
import type { Config } from "../config/index.ts";
import type { AlertFeed } from "../contracts/alert-feed.ts";
import type { Clock } from "../core/clock.ts";
import type { Sealing } from "../core/sealing.ts";
import type { Database } from "../database/database.ts";
import type { OutgoingSender } from "../outgoing/index.ts";
import type { Logger } from "../telemetry/logger.ts";
import { AlertChecks } from "./alert-checks.ts";
import { AlertRules } from "./alert-rules.ts";
import { NoticeOutbox } from "./notice-outbox.ts";
import { alertRoutes } from "./routes.ts";

export interface AlertsParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly database: Database;
  readonly sealing: Sealing;
  readonly outgoing: OutgoingSender;
  /** Filled while there are rules. */
  readonly feed: { current: AlertFeed | null };
}

export function createAlertsArea(parts: AlertsParts): AreaModule {
  const { database, clock, logger, sealing, outgoing, feed } = parts;
  const { allowPrivateHosts } = parts.config.file.outgoing;
  const rules = new AlertRules({
    database,
    clock,
    sealing,
    mayBePrivate: allowPrivateHosts,
    onChanged: () => {
      checks.follow();
      feed.current = rules.size === 0 ? null : checks;
    },
  });
  const outbox = new NoticeOutbox({ database, clock, logger, rules, outgoing });
  const checks = new AlertChecks({ rules, outbox, database, clock, logger });
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  return {
    mounts: [],
    routes: alertRoutes({ rules, outbox, database }),
    async start() {
      await rules.load();
      timer = setInterval(() => {
        // Nothing to check, and nothing to send: a rule that is deleted takes its notices along.
        if (rules.size > 0) running = checks.check();
      }, parts.config.file.alerts.checkIntervalMs);
    },
    async stop() {
      clearInterval(timer);
      await running;
    },
  };
}
