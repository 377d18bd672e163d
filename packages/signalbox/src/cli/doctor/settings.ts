/** Checks variables, configuration and who can reach the server with them. */
import { readFileSync } from "node:fs";
import { PROCESS_SETTINGS } from "../../config/index.ts";
import { nearestName } from "../../core/nearest-name.ts";
import { fail, type Finding, isLoopback, ok, type Patient, warn } from "./finding.ts";

const PREFIX = "SIGNALBOX_";
const VARIABLES: readonly string[] = [
  ...PROCESS_SETTINGS.flatMap(({ variable }) => (variable?.startsWith(PREFIX) === true ? [variable] : [])),
  // Of commands that use a server, of bin/reexec.js and of `dev`.
  ...["URL", "TOKEN", "NO_REEXEC", "RESTARTED"].map((name) => PREFIX + name),
];

/** `problem`: why the settings cannot be used. */
export function checkSettings({ config, environment }: Patient, problem: Error | null): Finding[] {
  const findings: Finding[] = [];
  if (problem !== null)
    findings.push(
      fail("settings", problem.message, "correct the setting; `signalbox serve` refuses to start with it"),
    );
  else if (config !== null)
    findings.push(
      ok(
        "settings",
        config.filePath === null ? "defaults, no configuration file" : `${config.filePath} is valid`,
      ),
    );
  for (const name of Object.keys(environment)) {
    // Variables with a prefix of their own belong to agents and custom providers.
    if (!name.startsWith(PREFIX) || VARIABLES.includes(name)) continue;
    const near = nearestName(name, VARIABLES);
    if (near !== undefined)
      findings.push(warn("settings", `the variable ${name} has no meaning`, `did you mean ${near}?`));
  }
  if (config?.filePath) findings.push(...checkPlainKeys(config.filePath));
  return findings;
}

/** Forms of keys that providers give out. */
const KEYS =
  /\b(?:sk-[\w-]{16,}|sk_(?:live|test)_\w{16,}|AIza[\w-]{30,}|gsk_\w{20,}|xai-\w{20,}|whsec_[\w+/=]{16,}|ghp_\w{30,}|AKIA[A-Z\d]{16})/;

function checkPlainKeys(path: string): Finding[] {
  const lines = readFileSync(path, "utf8").split("\n");
  const at = lines.findIndex((line) => KEYS.test(line));
  return at === -1
    ? []
    : [
        warn(
          "secrets",
          `${path}:${at + 1} seems to contain a key of a provider in plain text`,
          "put it in an environment variable, or store it with `signalbox provider-keys create`",
        ),
      ];
}

/** Who can reach the listeners, and what protects them. */
export function checkExposure({ config }: Patient): Finding[] {
  if (config === null) return [];
  const open = [config.host, ...(config.admin === null ? [] : [config.admin.host])].filter(
    (host) => !isLoopback(host),
  );
  if (open.length === 0) return [ok("exposure", `only this machine can connect (${config.host})`)];
  const findings: Finding[] = [];
  if (config.tls !== null)
    findings.push(ok("exposure", `other machines can connect to ${open.join(", ")}, with TLS`));
  else {
    const { publicUrl } = config.file.listener;
    findings.push(
      publicUrl?.startsWith("https:") === true
        ? ok(
            "exposure",
            `other machines can connect to ${open.join(", ")}; ${publicUrl} says that a proxy adds TLS`,
          )
        : warn(
            "exposure",
            `other machines can connect to ${open.join(", ")} without TLS: tokens are readable on the network`,
            "give a certificate with --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy with TLS and set listener.publicUrl to its https address",
          ),
    );
  }
  if (config.isMetricsPublic)
    findings.push(warn("exposure", "/metrics needs no token", "remove --metrics-public and METRICS_PUBLIC"));
  if (config.file.agents.access === "public")
    findings.push(
      warn(
        "exposure",
        'agents.access is "public": everybody can call every agent',
        'set agents.access to "token"',
      ),
    );
  return findings;
}
