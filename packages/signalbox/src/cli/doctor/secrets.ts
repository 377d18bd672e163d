/** Checks secrets: how they can be guessed, and who can read their files. Messages never contain a secret. */
import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { fail, type Finding, ok, type Patient, warn } from "./finding.ts";

const OTHERS = 0o077;
/** Fewer different characters are a word, not chance. */
const MIN_VARIETY = 8;
const MIN_LENGTH = 24;
const WORDS =
  /change.?me|password|passwd|example|default|secret|letmein|12345|qwerty|admin|root.?token|test/i;

export function checkSecrets(patient: Patient): Finding[] {
  const { environment } = patient;
  const names = Object.keys(environment).filter(
    (name) =>
      [
        "SIGNALBOX_ROOT_TOKEN",
        "SIGNALBOX_ENCRYPTION_KEY",
        "SIGNALBOX_MASTER_KEY",
        "SIGNALBOX_CLUSTER_SECRET",
      ].includes(name) || /(^|_)WEBHOOK_SECRET$/.test(name),
  );
  const weak = names.flatMap((name) =>
    (environment[name] ?? "").split(",").flatMap((part) => {
      const problem = weaknessOf(part.trim());
      return problem === null
        ? []
        : [warn("secrets", `${name} is weak: ${problem}`, "generate another one: openssl rand -hex 32")];
    }),
  );
  const files = [...checkFiles(patient), ...checkEnvFile(patient)];
  return [...weak, ...files].length === 0
    ? [ok("secrets", names.length === 0 ? "only generated secrets" : names.join(", "))]
    : [...weak, ...files];
}

/** Null if the secret is strong, or empty. */
export function weaknessOf(secret: string): string | null {
  if (secret === "") return null;
  if (secret.length < MIN_LENGTH) return `${secret.length} characters, at least ${MIN_LENGTH} are expected`;
  if (new Set(secret).size < MIN_VARIETY) return "it repeats a few characters";
  return WORDS.test(secret) ? "it contains a common word" : null;
}

/** Written with mode 0600; a copy or a backup may have lost it. */
function checkFiles({ dataDir }: Patient): Finding[] {
  return ["root-token", "encryption-key", "master-key", "webhook-secret"].flatMap((name) => {
    const path = join(dataDir, name);
    const mode = modeOf(path);
    return mode === null || (mode & OTHERS) === 0
      ? []
      : [
          fail(
            "secrets",
            `${path} is readable by other users (mode ${mode.toString(8)})`,
            `chmod 600 ${path}`,
          ),
        ];
  });
}

function checkEnvFile({ envFile, workingFolder }: Patient): Finding[] {
  if (envFile === undefined) return [];
  const path = resolve(workingFolder, envFile);
  const mode = modeOf(path);
  return mode === null || (mode & 0o007) === 0
    ? []
    : [warn("secrets", `${path} is readable by all users (mode ${mode.toString(8)})`, `chmod 600 ${path}`)];
}

/** Null if there is no file, or this user may not look: that is a finding about the folder. */
function modeOf(path: string): number | null {
  try {
    return statSync(path).mode & 0o777;
  } catch {
    return null;
  }
}
