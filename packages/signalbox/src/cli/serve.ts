/** `signalbox serve`: runs the service until it is told to stop. */
import { SignalboxError } from "@signalbox/protocol";
import { loadConfig } from "../config/index.ts";
import { type Service, startService } from "../service.ts";
import { isBusy, isFullDisk } from "../engines/sqlite-file/index.ts";
import { createLogger } from "../telemetry/logger.ts";
import { UncaughtErrors } from "../telemetry/uncaught-errors.ts";
import { VERSION } from "../version.ts";
import type { Command } from "./command.ts";
import { readEnvironment, toFlags } from "./environment.ts";
import { SERVE_OPTIONS } from "./options.ts";

export const serve: Command = {
  words: ["serve"],
  summary:
    "Run the service. With --json the first line is an object with url, pid and the root token's file; `signalbox login-link` then makes a link into the dashboard.",
  options: SERVE_OPTIONS,
  async run(context) {
    const config = await loadConfig(toFlags(context), readEnvironment(context), context.workingFolder);
    const logger = createLogger({ level: config.logLevel, isPretty: context.err.isTTY === true });
    // Listened for from the beginning: a signal during the start must stop it too, not kill it half-way.
    const stop = Promise.withResolvers<StopReason>();
    stopOnSignals(stop.resolve);
    const uncaughtErrors = new UncaughtErrors({
      logger,
      isPassing: (error) => error instanceof SignalboxError || isFullDisk(error) || isBusy(error),
      onUnsound: () => stop.resolve("unsound"),
    });
    uncaughtErrors.install();
    const service = await startService({
      config,
      logger,
      makesWebhookSecret: true,
      uncaughtErrors,
      // Nothing may be answered from storage that lost writes; a supervisor restarts us from what is really on disk.
      onFatal: (error) => {
        logger.fatal({ err: error }, "stopping at once");
        process.exit(1);
      },
    });
    context.out.write(
      context.isJson ? `${JSON.stringify(startLine(service))}\n` : welcome(service, config.dataDir),
    );
    const reason = await stop.promise;
    logger.info({ reason }, "stopping");
    if (reason === "unsound") {
      // Whatever is wrong may keep the stop from ending, too.
      const graceMs = config.file.listener.gracePeriodMs + UNSOUND_STOP_MS;
      setTimeout(() => process.exit(1), graceMs).unref();
    }
    try {
      await service.stop();
    } catch (error) {
      logger.error({ err: error }, "could not stop cleanly");
      // Something still waits, say for room on the disk, and would keep the process.
      process.exit(1);
    }
    if (reason === "unsound") process.exit(1);
  },
};

/** What a program that starts the service needs: where it is, and where the root token is; never the token itself, which would end up in logs. */
function startLine({ url, adminUrl, rootToken }: Service): object {
  return {
    url,
    pid: process.pid,
    ...(adminUrl === url ? {} : { admin_url: adminUrl }),
    ...(rootToken.file === null ? {} : { root_token_file: rootToken.file }),
  };
}
/** A signal, or an error after which memory cannot be trusted. */
type StopReason = NodeJS.Signals | "unsound";

/** Beyond the grace period of running requests. */
const UNSOUND_STOP_MS = 5000;

function welcome(service: Service, dataDir: string): string {
  const lines = [`Signalbox ${VERSION} on ${service.url}`];
  if (service.adminUrl !== service.url) lines.push(`Dashboard and management on ${service.adminUrl}`);
  lines.push(`Data in ${dataDir}`, "");
  for (const warning of service.warnings) lines.push(`Warning: ${warning}`);
  if (service.warnings.length > 0) lines.push("");
  if (service.rootToken.isNew) {
    lines.push(
      "Root token, shown this once (it is kept in the data folder's root-token file):",
      `  ${service.rootToken.secret.reveal()}`,
      "",
    );
  }
  lines.push("Dashboard (this link logs in once, within ten minutes; `signalbox login-link` makes another):");
  lines.push(`  ${service.createLoginLink()}`, "");
  if (service.firstCommands.length > 0) {
    lines.push("Try it:");
    for (const { title, command } of service.firstCommands) lines.push(`  # ${title}`, `  ${command}`, "");
  }
  return `${lines.join("\n")}\n`;
}

/** The first SIGTERM or SIGINT; a second one ends the process at once. */
function stopOnSignals(onStop: (name: NodeJS.Signals) => void): void {
  for (const name of ["SIGTERM", "SIGINT"] as const) {
    process.once(name, () => {
      process.once(name, () => process.exit(1));
      onStop(name);
    });
  }
}
