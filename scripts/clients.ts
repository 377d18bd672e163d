/**
 * `npm run clients`: whether coding clients still work at their newest versions. Compares the versions that are tested (test/coding-clients/clients.ts)
 * with those of npm, and runs the tests of the clients that have a newer one, and of those that are no part of `npm run test:long`. Fails if one of them
 * breaks: for a job that runs every day.
 *
 * - `--list`: only compares.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { CODING_CLIENTS } from "../test/coding-clients/clients.ts";
import { versionAt } from "../test/coding-clients/fetch-client.ts";

const ROOT = join(import.meta.dirname, "..");

const args = process.argv.slice(2);
if (args.some((arg) => arg !== "--list")) {
  console.error("usage: npm run clients [-- --list]");
  process.exitCode = 2;
} else {
  const files = filesToRun();
  if (!args.includes("--list")) process.exitCode = await test(files);
}

/** Those of the clients of which npm has another version than the one that is tested, and those that run every day. */
function filesToRun(): string[] {
  return CODING_CLIENTS.flatMap(({ name, packageName, version }) => {
    const newest = versionAt(packageName, "latest");
    console.log(
      `${name}: ${version} is tested, ${newest === version ? "and the newest" : `npm has ${newest}`}`,
    );
    const file = `test/coding-clients/${name.toLowerCase().replace(" ", "-")}`;
    const daily = `${file}.daily.test.ts`;
    if (existsSync(join(ROOT, daily))) return [daily];
    return newest === version ? [] : [`${file}.long.test.ts`];
  });
}

async function test(files: readonly string[]): Promise<number> {
  const env = { ...process.env, CODING_CLIENTS: "latest" };
  const runner = [join(import.meta.dirname, "test.ts"), ...files];
  const child = spawn(process.execPath, runner, { stdio: "inherit", env });
  const [code] = (await once(child, "exit")) as [number | null];
  console.log(
    code === 0
      ? "The newest versions work: enter them in test/coding-clients/clients.ts and docs/guides/coding-agents.md."
      : "A client does not work with this gateway; the failures are above.",
  );
  return code ?? 1;
}
