/** `bin/reexec.js` in real processes. A small program stands in for the command line. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const REEXEC = new URL("../../bin/reexec.js", import.meta.url).href;
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-reexec-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Started {
  readonly flags: readonly string[];
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** Every process that the program becomes, in order, and what it wrote to standard error. */
function start(
  args: readonly string[],
  options: { before?: string; env?: Record<string, string> } = {},
): { processes: Started[]; errors: string } {
  const program = join(folder, "program.js");
  writeFileSync(
    program,
    `import { reexec } from ${JSON.stringify(REEXEC)};
     import { writeSync } from "node:fs";
     const { execArgv: flags, argv, env: environment } = process;
     writeSync(1, JSON.stringify({ flags, args: argv.slice(2), environment }) + "\\n");
     ${options.before ?? ""};
     reexec(new URL("main.js", import.meta.url), "/the/cache");`,
  );
  const { MALLOC_ARENA_MAX: _, SIGNALBOX_NO_REEXEC: __, ...inherited } = process.env;
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--", program, ...args], {
    encoding: "utf8",
    env: { ...inherited, ...options.env },
  });
  expect(status, stderr).toBe(0);
  const lines = stdout.trim().split("\n");
  return { processes: lines.map((line) => JSON.parse(line) as Started), errors: stderr };
}

describe("the restart of serve", () => {
  it("happens once, keeps the arguments, and applies flags and variables", () => {
    const { processes, errors } = start(["serve", "--env-file", "none"]);
    expect(errors).toBe("");
    expect(processes).toHaveLength(2);
    expect(processes[1]?.flags).toEqual(expect.arrayContaining(["--max-semi-space-size=8"]));
    expect(processes[1]?.args).toEqual(["serve", "--env-file", "none"]);
    expect(processes[1]?.environment).toMatchObject({
      MALLOC_ARENA_MAX: "2",
      NODE_COMPILE_CACHE: "/the/cache",
    });
  });

  it("keeps variables that are set already", () => {
    const { processes } = start(["serve"], { env: { MALLOC_ARENA_MAX: "7" } });
    expect(processes.map(({ environment }) => environment["MALLOC_ARENA_MAX"])).toEqual(["7", "7"]);
  });

  it("is for serve only", () => {
    expect(start(["token", "list"]).processes).toHaveLength(1);
  });

  it.each([
    ["is missing", "process.execve = undefined", ""],
    [
      "throws",
      'process.execve = () => { throw new Error("not permitted"); }',
      "signalbox: cannot restart with memory settings, continuing without: not permitted\n",
    ],
    [
      "would abort because the binary is gone",
      'process.execPath = "/nonexistent/node"',
      expect.stringMatching(/^signalbox: cannot restart .*ENOENT.*\n$/),
    ],
  ])("is skipped if execve %s", (_reason, before, message) => {
    const { processes, errors } = start(["serve"], { before });
    expect(processes).toHaveLength(1);
    expect(errors).toEqual(message);
  });

  it.each([
    ["--no-reexec", ["serve", "--no-reexec"], {}],
    ["SIGNALBOX_NO_REEXEC=1", ["serve"], { SIGNALBOX_NO_REEXEC: "1" }],
  ])("is switched off by %s", (_name, args, env) => {
    const { processes, errors } = start(args, { env });
    expect(processes).toHaveLength(1);
    expect(errors).toBe("");
  });

  it.each(["", "0"])("is not switched off by SIGNALBOX_NO_REEXEC=%s", (value) => {
    expect(start(["serve"], { env: { SIGNALBOX_NO_REEXEC: value } }).processes).toHaveLength(2);
  });
});
