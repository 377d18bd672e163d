/** Runs all checks. A check that fails itself is a finding, not the end. */
import {
  checkCluster,
  checkWorkerAccess,
  type Config,
  ConfigError,
  countProcesses,
  loadConfig,
} from "../../config/index.ts";
import { dataDirOf } from "../../config/data-dir.ts";
import { plainLine } from "../../core/plain-text.ts";
import { type CommandContext, UsageError } from "../command.ts";
import { readEnvironment, toFlags } from "../environment.ts";
import { type Style, styleOf } from "../style.ts";
import { checkCertificate } from "./certificate.ts";
import { checkCores } from "./cores.ts";
import { checkDataFolder } from "./data-folder.ts";
import { fail, type Finding, type Patient } from "./finding.ts";
import { checkPostgres } from "./postgres.ts";
import { checkSecrets } from "./secrets.ts";
import { checkServer } from "./server.ts";
import { checkExposure, checkSettings } from "./settings.ts";
import { checkClock, checkSystem } from "./system.ts";

export interface Report {
  readonly status: Finding["status"];
  readonly checks: readonly Finding[];
}

/** Resolves to the exit code: 1 if a check failed. */
export async function runDoctor(context: CommandContext): Promise<number> {
  const report = await examine(context);
  if (context.isJson) context.print(report, () => "");
  else context.out.write(show(report, styleOf(context.out, context.environment)));
  return report.status === "fail" ? 1 : 0;
}

async function examine(context: CommandContext): Promise<Report> {
  const [startedAt, startedMs] = [Date.now(), performance.now()];
  const environment = readEnvironment(context);
  const { config, problem } = await readConfig(context, environment);
  const patient: Patient = {
    config,
    environment,
    dataDir: dataDirOf(context.option("data-dir"), environment, context.workingFolder),
    databaseUrls: databaseUrlsOf(context, environment, config),
    workingFolder: context.workingFolder,
    envFile: context.option("env-file"),
  };
  const clock = () => checkClock(performance.now() - startedMs, Date.now() - startedAt);
  const checks: (readonly [string, () => Finding[] | Promise<Finding[]>])[] = [
    ["settings", () => checkSettings(patient, problem)],
    ["exposure", () => checkExposure(patient)],
    ["certificate", () => checkCertificate(patient)],
    ["secrets", () => checkSecrets(patient)],
    ["data folder", () => checkDataFolder(patient)],
    ["postgresql", () => checkPostgres(patient)],
    ["server", () => checkServer(context, patient)],
    ["cores", () => checkCores(patient)],
    ["system", () => checkSystem(patient)],
    ["clock", clock],
  ];
  const findings: Finding[] = [];
  for (const [name, check] of checks) findings.push(...(await attempt(name, check)));
  const worst = (["fail", "warn"] as const).find((status) => findings.some((one) => one.status === status));
  return { status: worst ?? "ok", checks: findings };
}

async function attempt(name: string, check: () => Finding[] | Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await check();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const remedy =
      error instanceof UsageError ? "correct the command line" : "report this as a defect, with the message";
    return [fail(name, message, remedy)];
  }
}

async function readConfig(
  context: CommandContext,
  environment: Patient["environment"],
): Promise<{ config: Config | null; problem: Error | null }> {
  let config: Config | null = null;
  try {
    config = await loadConfig(toFlags(context), environment, context.workingFolder);
    checkWorkerAccess(config.file.agents);
    checkCluster(config);
    countProcesses(config);
    return { config, problem: null };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { config, problem: error };
  }
}

/** Also without a valid configuration. */
function databaseUrlsOf(
  context: CommandContext,
  environment: Patient["environment"],
  config: Config | null,
): string[] {
  const given = context.option("database-url") ?? environment["DATABASE_URL"] ?? "";
  const stores = (config?.agentStores ?? []).map((secret) => secret.reveal());
  return [...new Set([...(/^postgres(ql)?:/.test(given) ? [given] : []), ...stores])];
}

const COLOURS = { ok: "green", warn: "yellow", fail: "red" } as const;

function show({ checks }: Report, style: Style): string {
  const width = Math.max(...checks.map(({ check }) => check.length));
  const lines = checks.map(({ check, status, message, remedy }) => {
    const head = `${style(COLOURS[status], status.padEnd(4))}  ${check.padEnd(width)}  ${plainLine(message)}\n`;
    return remedy === null ? head : `${head}${" ".repeat(width + 8)}→ ${plainLine(remedy)}\n`;
  });
  const count = (status: Finding["status"]) => checks.filter((one) => one.status === status).length;
  return `${lines.join("")}\n${count("ok")} ok, ${count("warn")} to look at, ${count("fail")} failed\n`;
}
