import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { readCodeBlocks, ROOT } from "../docs/support/code-blocks.ts";
import { runExample } from "./run-example.ts";

it("the counter agent starts with one command and answers the commands of its README", async () => {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-counter-"));
  const example = runExample("counter-agent", ["--port", "0", "--data-dir", folder]);
  onTestFinished(async () => {
    await example.stop();
    await rm(folder, { recursive: true, force: true });
  });
  const [, SIGNALBOX_URL = ""] = await example.printed(/Signalbox \S+ on (http:\S+)/);
  const SIGNALBOX_TOKEN = await readFile(join(folder, "root-token"), "utf8");
  const commands = readCodeBlocks("examples/counter-agent/README.md").at(-1)?.code ?? "";
  // The npm command has another data folder than the README's: the variables say where the server is.
  const { stdout } = await promisify(execFile)("bash", ["-euc", commands], {
    cwd: ROOT,
    env: { ...process.env, SIGNALBOX_URL, SIGNALBOX_TOKEN: SIGNALBOX_TOKEN.trim() },
  });
  expect(stdout).toMatch(/^1$/m);
  expect(stdout).toMatch(/"by": "ann",\s+"hits": 1/);
  expect(stdout).toContain('"lastBy": "ann"');
  expect(stdout).toContain("0 6 * * *");
});
