/** The unit in `deploy/systemd`: systemd accepts it, it is hardened, and its limits fit the service. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { configFile } from "../../packages/signalbox/src/config/config-file.ts";
import { findSystemdAnalyze, SYSTEMD_IS_MISSING } from "../support/systemd-path.ts";

const UNIT = join(import.meta.dirname, "../../deploy/systemd/signalbox.service");
const CLI = join(import.meta.dirname, "../../packages/signalbox/bin/signalbox.js");
const text = readFileSync(UNIT, "utf8");
const setting = (name: string) => new RegExp(`^${name}=(.*)$`, "m").exec(text)?.[1];

let folder: string;
let unit: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-unit-"));
  unit = join(folder, "signalbox.service");
  // Only the paths of an installation are replaced.
  const installed = text
    .replace("/usr/bin/node ", `${process.execPath} `)
    .replace("/opt/signalbox/node_modules/signalbox/bin/signalbox.js", CLI);
  expect(installed).toContain(`ExecStart=${process.execPath} ${CLI} serve\n`);
  writeFileSync(unit, installed);
});
afterAll(() => rmSync(folder, { recursive: true }));

function analyze(...args: string[]) {
  const program = findSystemdAnalyze();
  if (program === null) throw new Error(SYSTEMD_IS_MISSING);
  return spawnSync(program, args, {
    encoding: "utf8",
    env: { ...process.env, SYSTEMD_COLORS: "0", LC_ALL: "C" },
  });
}

it("systemd accepts the unit without a warning", () => {
  const { status, stdout, stderr } = analyze("verify", "--man=no", unit);
  expect([status, stdout + stderr]).toEqual([0, ""]);
});

it("systemd finds little exposure (0 is none, 10 is all)", () => {
  const { stdout } = analyze("security", "--offline=true", unit);
  expect(
    Number(/Overall exposure level for signalbox.service: ([\d.]+)/.exec(stdout)?.[1]),
  ).toBeLessThanOrEqual(1.6);
});

it("V8 may compile, the stop is waited for, and the data folder is the one that systemd makes", () => {
  expect(setting("MemoryDenyWriteExecute")).toBe("no");
  const { gracePeriodMs, maxConnections } = configFile.parse({}).listener;
  // Lame duck of a cluster (5 s) and the move of instances (10 s) come before the grace period; closing a stalled store has 5 s.
  expect(Number(setting("TimeoutStopSec")) * 1000).toBeGreaterThan(10_000 + gracePeriodMs + 5000);
  expect(Number(setting("LimitNOFILE"))).toBeGreaterThan(2 * maxConnections);
  expect(setting("Environment")).toContain(`SIGNALBOX_DATA_DIR=%S/${setting("StateDirectory")}`);
  // One process without PostgreSQL and a cluster secret.
  expect(setting("Environment")).toContain("SIGNALBOX_PROCESSES=auto");
  // The supervisor stops the others.
  expect(setting("KillMode")).toBe("mixed");
  expect(setting("Type")).toBe("exec");
  expect(setting("ExecReload")).toBe("/bin/kill -HUP $MAINPID");
});
