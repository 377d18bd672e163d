/** What npm prints when somebody installs the repository. Nothing is built, written or fetched. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";
import { findOldNode } from "./old-node.ts";
import { terminal } from "./terminal.ts";

const ROOT = join(import.meta.dirname, "../..");

it.each(["npm ci --omit=dev", "npm ci"])("`%s` on an older Node prints no warning", (line) => {
  // With npm's own level of messages.
  const { npm_config_loglevel: _, ...env } = terminal(findOldNode());
  const dry = ["--dry-run", "--offline", "--ignore-scripts"];
  const { status, stdout, stderr } = spawnSync("npm", [...line.split(" ").slice(1), ...dry], {
    cwd: ROOT,
    encoding: "utf8",
    env,
    // It blocks this process, so the runner's limit would not end it.
    timeout: 600_000,
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(stdout).not.toContain("funding");
});
