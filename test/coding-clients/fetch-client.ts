/**
 * Fetches a client from npm into `.cache/coding-clients`, once for each version, and finds its program. Clients are no dependencies of the
 * project: they are large, and another version of one must not change what a build contains.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const CACHE = join(import.meta.dirname, "../../.cache/coding-clients");

export interface FetchedClient {
  /** The version that was installed, which `latest` does not say. */
  readonly version: string;
  readonly program: string;
}

/** `version`: a version, or a tag such as `latest`, which is resolved anew each time. */
export function fetchClient(packageName: string, program: string, version: string): FetchedClient {
  const exact = /^\d/.test(version) ? version : versionAt(packageName, version);
  const folder = join(CACHE, `${packageName.replace("/", "+")}@${exact}`);
  if (!existsSync(folder)) install(packageName, exact, folder);
  const { version: installed } = JSON.parse(
    readFileSync(join(folder, "node_modules", packageName, "package.json"), "utf8"),
  ) as { version: string };
  return { version: installed, program: join(folder, "node_modules/.bin", program) };
}

/** The version that a tag of npm means now. */
export function versionAt(packageName: string, tag: string): string {
  return npm(["view", `${packageName}@${tag}`, "version"], CACHE).trim();
}

/** The folder appears whole or not at all. */
function install(packageName: string, version: string, folder: string): void {
  const specifier = `${packageName}@${version}`;
  const unfinished = `${folder}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  // Some link the program for this system in a script.
  const settings = { private: true, allowScripts: { [packageName]: true } };
  writeFileSync(join(unfinished, "package.json"), JSON.stringify(settings));
  process.stderr.write(`${specifier} is fetched into .cache/coding-clients …\n`);
  npm(["install", "--no-audit", "--no-fund", "--loglevel=error", specifier], unfinished);
  renameSync(unfinished, folder);
}

function npm(args: readonly string[], cwd: string): string {
  mkdirSync(cwd, { recursive: true });
  const { status, stdout, stderr } = spawnSync("npm", args, { cwd, encoding: "utf8" });
  if (status !== 0) throw new Error(`npm ${args.join(" ")} failed: ${stderr}`);
  return stdout;
}
