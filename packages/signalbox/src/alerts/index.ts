/** The alerts area: rules on what the other areas report, and notices to their receivers. */
import type { AreaModule } from "../area-module.ts";
import type { Config } from "../config/index.ts";
import type { AlertFeed } from "../contracts/alert-feed.ts";
import type { Clock } from "../core/clock.ts";
import type { Sealing } from "../core/sealing.ts";
import { SharedClock } from "../core/shared-clock.ts";
import { ulid } from "../core/ulid.ts";
import type { Database } from "../database/database.ts";
import type { SharedSettings } from "../database/shared-settings.ts";
import type { OutgoingSender } from "../outgoing/index.ts";
import type { Logger } from "../telemetry/logger.ts";
import { AlertChecks } from "./alert-checks.ts";
import { AlertMeasures } from "./alert-measures.ts";
import { AlertRules } from "./alert-rules.ts";
import { LocalChecks } from "./local-checks.ts";
import { NoticeOutbox } from "./notice-outbox.ts";
import { alertRoutes } from "./routes.ts";
import { SharedChecks } from "./shared-checks.ts";

export interface AlertsParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly database: Database;
  readonly settings: SharedSettings;
  readonly sealing: Sealing;
  readonly outgoing: OutgoingSender;
  /** Filled while there are rules. */
  readonly feed: { current: AlertFeed | null };
}

export function createAlertsArea(parts: AlertsParts): AreaModule {
  const { database, settings, logger, sealing, outgoing, feed } = parts;
  const { allowPrivateHosts } = parts.config.file.outgoing;
  const { checkIntervalMs } = parts.config.file.alerts;
  const clock = new SharedClock(parts.clock);
  const rules = new AlertRules({
    database,
    settings,
    clock,
    sealing,
    mayBePrivate: allowPrivateHosts,
    onChanged: () => {
      measures.follow();
      feed.current = rules.size === 0 ? null : measures;
    },
  });
  const measures = new AlertMeasures(rules, clock);
  const outbox = new NoticeOutbox({ database, clock, logger, rules, outgoing });
  const common = { rules, measures, outbox, database, clock };
  const shared = settings.isShared
    ? new SharedChecks({ ...common, node: ulid(parts.clock.now()), intervalMs: checkIntervalMs })
    : null;
  const checks = new AlertChecks(shared ?? new LocalChecks(common), outbox, logger);
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  return {
    mounts: [],
    routes: alertRoutes({ rules, outbox, database }),
    async start() {
      await shared?.adjustClock();
      await rules.load();
      timer = setInterval(() => {
        // Nothing to check, and nothing to send: a rule that is deleted takes its notices along.
        if (rules.size > 0) running = checks.run();
      }, checkIntervalMs);
    },
    async stop() {
      clearInterval(timer);
      await running;
      // What this node has measured counts after its stop, too.
      if (rules.size > 0 && shared !== null) await checks.run();
      await outbox.close();
    },
  };
}
