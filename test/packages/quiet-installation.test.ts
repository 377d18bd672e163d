/** What npm prints when somebody installs the repository. Nothing is built, written or fetched. */
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { findOldNode } from "./old-node.ts";

const ROOT = join(import.meta.dirname, "../..");

it.each(["npm ci --omit=dev", "npm ci"])("`%s` on an older Node prints no warning", (line) => {
  const own = /^npm_|^NODE_OPTIONS$/;
  const environment = Object.entries(process.env).filter(([name]) => !own.test(name));
  const dry = ["--dry-run", "--offline", "--ignore-scripts"];
  const { status, stdout, stderr } = spawnSync("npm", [...line.split(" ").slice(1), ...dry], {
    cwd: ROOT,
    encoding: "utf8",
    env: { ...Object.fromEntries(environment), PATH: `${dirname(findOldNode())}:${process.env["PATH"]}` },
    // It blocks this process, so the runner's limit would not end it.
    timeout: 600_000,
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(stdout).not.toContain("funding");
});
