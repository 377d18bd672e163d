/** The commands that a start prints, run as a newcomer runs them: pasted into a second terminal, in a clone and in a project that was created in it. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { findOldNode } from "./old-node.ts";
import { terminal } from "./terminal.ts";

const ROOT = join(import.meta.dirname, "../..");
const COMMANDS = /^ {2}# (.+)\n {2}(.+)$/gm;

let folder: string;
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "signalbox-first-commands-")));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(line: string, cwd: string, env: NodeJS.ProcessEnv): string {
  const { status, stdout, stderr } = spawnSync("bash", ["-c", line], {
    cwd,
    env,
    encoding: "utf8",
    // It blocks this process, so the runner's limit would not end it.
    timeout: 600_000,
  });
  expect({ line, status, stderr }).toEqual({ line, status: 0, stderr: "" });
  return stdout;
}

/** What the line prints until the last command; the program runs until the test ends. */
async function start(line: string, cwd: string, env: NodeJS.ProcessEnv): Promise<string> {
  const child = spawn("bash", ["-c", line], {
    cwd,
    env,
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
  });
  onTestFinished(() => end(child));
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  await expect.poll(() => output).toMatch(/# Tag the default gateway\n.+\n/);
  return output;
}

/** All processes of the line: npm does not forward signals to its scripts. */
async function end(child: ChildProcess): Promise<void> {
  // The last of them closes the output.
  const close = once(child, "close");
  process.kill(-(child.pid ?? 0), "SIGTERM");
  await close;
}

/** Runs the printed commands in their order; returns what each printed, by title. */
function paste(output: string, cwd: string, env: NodeJS.ProcessEnv): [title: string, printed: string][] {
  return [...output.matchAll(COMMANDS)].map(([, title = "", line = ""]) => {
    expect(line.length, line).toBeLessThan(200);
    return [title, run(line, cwd, env)];
  });
}

function expected(agent: string): unknown[] {
  return [
    ["Call the built-in echo provider through the gateway", expect.stringContaining('"content":"Hello"')],
    [
      "Send a signed webhook for the entity my-device to its agent",
      expect.stringMatching(/^200 \{"status":"processed"\}/),
    ],
    [
      "Show the agent's instance that received it",
      expect.stringMatching(RegExp(`^${agent}/my-device\\n[^]*"eventCount": 1`)),
    ],
    ["Tag the default gateway", expect.stringMatching(/env +dev|env=dev/)],
  ];
}

it("the commands that `npm start` prints in a clone work there, on an older Node", async () => {
  const env = terminal(findOldNode());
  const output = await start(`npm start -- --port 0 --data-dir ${folder}/data`, ROOT, env);
  expect(output).toContain(`npx signalbox login-link --data-dir ${folder}/data`);
  expect(paste(output, ROOT, env)).toEqual(expected("webhook-agent"));
});

it("a project that is created in a clone is installed, tested and checked, and the commands that `npm run dev` prints work in it", async () => {
  const env = terminal(process.execPath);
  run(`npx signalbox init ${folder}/my-project`, ROOT, env);
  const project = join(folder, "my-project");
  run("npm install --prefer-offline --no-audit --no-fund", project, env);
  expect(run("npm test", project, env)).toMatch(/pass 1$/m);
  run("npm run check", project, env);
  const output = await start("npm run dev -- --port 0", project, env);
  expect(paste(output, project, env)).toEqual(expected("device-agent"));
});
