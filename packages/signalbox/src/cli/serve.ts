/** `signalbox serve`: runs the service until a signal stops it. */
import type { Service, StopManner } from "../service.ts";
import { VERSION } from "../version.ts";
import type { Command, CommandContext } from "./command.ts";
import { readEnvironment, toFlags } from "./environment.ts";
import { SERVE_OPTIONS } from "./options.ts";
import type { ProcessMember } from "./processes/member.ts";
import { PLACE_VARIABLE } from "./processes/messages.ts";
import { standBy, standsBy } from "./dev/stand-by.ts";

export const serve: Command = {
  words: ["serve"],
  summary:
    "Run the service. With --json, the first line of output is an object with url, pid and root_token_file; `signalbox login-link` prints a login link.",
  options: SERVE_OPTIONS,
  async run(context) {
    const stop = Promise.withResolvers<StopReason>();
    const member = await findMember(context, (manner) => stop.resolve(manner));
    // Loaded here, because every other command starts without the service, and so does the supervisor of several processes.
    const { configOfProcess, countProcesses, loadConfig } = await import("../config/index.ts");
    const loaded = await loadConfig(toFlags(context), readEnvironment(context), context.workingFolder);
    const count = member === null ? countProcesses(loaded) : 1;
    if (count > 1) {
      const { supervise } = await import("./processes/supervisor.ts");
      return supervise(loaded, count, context);
    }
    const config = member === null ? loaded : configOfProcess(loaded, member.place);
    const {
      commandLine,
      createLogger,
      currentTurn,
      isBusy,
      isFullDisk,
      SignalboxError,
      startService,
      UncaughtErrors,
    } = await import("./serve-modules.ts");
    const own = createLogger({ level: config.logLevel, isPretty: context.err.isTTY === true });
    const logger = member === null ? own : own.child({ process: member.number });
    const started = Promise.withResolvers<Service>();
    if (member === null) {
      // Installed first: a signal during the start must also stop the service in order.
      stopOnSignals(stop.resolve);
      reloadOnHangup(started.promise, config.tls !== null || context.err.isTTY !== true);
    }
    const uncaughtErrors = new UncaughtErrors({
      logger,
      isTransient: (error) => error instanceof SignalboxError || isFullDisk(error) || isBusy(error),
      isInTurn: () => currentTurn() !== undefined,
      onInterrupted: () => stop.resolve("unsound"),
    });
    uncaughtErrors.install();
    const service = await startService({
      config,
      logger,
      makesWebhookSecret: true,
      uncaughtErrors,
      ...(member === null ? {} : { processes: member }),
      ...(standsBy(context.environment) ? { whenLoaded: standBy } : {}),
      // The service must not serve data from storage that lost writes. A supervisor restarts it from the data on disk.
      onFatal: (error) => {
        logger.fatal({ err: error }, "fatal storage error, exiting");
        process.exit(1);
      },
    });
    started.resolve(service);
    // `dev` and the supervisor of several processes report restarts themselves.
    const isQuiet = context.isJson || context.environment["SIGNALBOX_RESTARTED"] !== undefined;
    const text = isQuiet
      ? ""
      : await welcome(service, {
          dataDir: config.commandDataDir ?? config.dataDir,
          linkCommand: commandLine(config, true)("login-link"),
          isTerminal: context.out.isTTY === true,
        });
    if (member === null) {
      context.out.write(context.isJson ? `${JSON.stringify(startLine(service))}\n` : text);
      // For `dev`, which starts this command.
      process.send?.({ serving: service.url });
    } else {
      member.serving(startLine(service), text);
    }
    const reason = await stop.promise;
    logger.info({ reason }, "stopping");
    if (reason === "unsound") {
      // The defect may also prevent the stop from completing.
      const graceMs = config.file.listener.gracePeriodMs + UNSOUND_STOP_MS;
      setTimeout(() => process.exit(1), graceMs).unref();
    }
    try {
      const isManner = reason === "replaced" || reason === "in order";
      await service.stop(reason === "unsound" ? "urgently" : isManner ? reason : "in order");
    } catch (error) {
      logger.error({ err: error }, "the service did not stop cleanly");
      // Pending work, e.g. writes to a full disk, would keep the process running.
      process.exit(1);
    }
    if (reason === "unsound") process.exit(1);
    await member?.leave();
    // What code of agents has left open, such as a request without an answer, must not keep the process.
    setTimeout(() => process.exit(0), LEFT_OPEN_MS).unref();
    return 0;
  },
};

/** For programs that start the service. Contains the file of the root token and not the token, because output is often logged. */
function startLine({ url, adminUrl, rootToken }: Service): object {
  return {
    url,
    pid: process.pid,
    ...(adminUrl === url ? {} : { admin_url: adminUrl }),
    ...(rootToken.file === null ? {} : { root_token_file: rootToken.file }),
  };
}

/** A signal, what the supervisor says, or an error after which the state in memory may be invalid. */
type StopReason = NodeJS.Signals | StopManner | "unsound";

/** Null unless the supervisor of several processes has started this one. */
async function findMember(
  { environment }: CommandContext,
  onStop: (manner: StopManner) => void,
): Promise<ProcessMember | null> {
  if (environment[PLACE_VARIABLE] === undefined) return null;
  const { ProcessMember } = await import("./processes/member.ts");
  return ProcessMember.find(onStop);
}

/** Time limit of the stop, in addition to the grace period of running requests. */
const UNSOUND_STOP_MS = 5000;

/** Enough for what ends by itself, and for the output. */
const LEFT_OPEN_MS = 1000;

interface WelcomeOptions {
  readonly dataDir: string;
  readonly linkCommand: string;
  /** False: what is printed is stored for good, in the log of a container or of the system. It contains no credential then. */
  readonly isTerminal: boolean;
}

async function welcome(
  service: Service,
  { dataDir, linkCommand, isTerminal }: WelcomeOptions,
): Promise<string> {
  const { rootToken } = service;
  const lines = [`Signalbox ${VERSION} on ${service.url}`];
  if (service.adminUrl !== service.url) lines.push(`Dashboard and management on ${service.adminUrl}`);
  lines.push(`Data in ${dataDir}`, "");
  for (const warning of service.warnings) lines.push(`Warning: ${warning}`);
  if (service.warnings.length > 0) lines.push("");
  if (isTerminal) {
    if (rootToken.isNew) {
      lines.push(
        "Root token, shown only once (stored in the file root-token of the data folder):",
        `  ${rootToken.secret.reveal()}`,
        "",
      );
    }
    lines.push(`Dashboard (login link, valid once for ten minutes; \`${linkCommand}\` prints another):`);
    lines.push(`  ${await service.createLoginLink()}`, "");
  } else {
    // In a container both need a shell in it; the guides of each kind of deployment have the lines.
    if (rootToken.isNew) lines.push(`Root token (new, readable by its owner only): ${rootToken.file}`);
    lines.push(
      `Dashboard: for a login link, run \`${linkCommand}\` where the service runs (with docker: docker exec CONTAINER ${linkCommand})`,
      "",
    );
  }
  if (service.firstCommands.length > 0) {
    lines.push("Try it, in this folder:");
    for (const { title, command } of service.firstCommands) lines.push(`  # ${title}`, `  ${command}`, "");
  }
  return `${lines.join("\n")}\n`;
}

/**
 * SIGHUP reads the certificate again, after a start that is in progress. `isDaemon` is false for a server without a certificate on a terminal: there the
 * signal says that the terminal was closed, and ends the process. Supervisors send it as "reload".
 */
function reloadOnHangup(started: Promise<Service>, isDaemon: boolean): void {
  if (isDaemon) process.on("SIGHUP", () => void started.then((service) => service.reloadCertificate()));
}

/** Calls `onStop` on the first SIGTERM or SIGINT; the second one ends the process at once. */
function stopOnSignals(onStop: (name: NodeJS.Signals) => void): void {
  for (const name of ["SIGTERM", "SIGINT"] as const) {
    process.once(name, () => {
      process.once(name, () => process.exit(1));
      onStop(name);
    });
  }
}
