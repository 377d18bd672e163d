/** The `signalbox` command: help, exit codes, and management through a running server or the data folder. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { runCliHere } from "../support/run-cli.ts";
import {
  runCliProcess,
  type ServerProcess,
  spawnCli,
  startServerProcess,
} from "../support/server-process.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-cli-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** In this process; a process per command costs a second. */
const cli = (args: readonly string[], env: Record<string, string> = {}) =>
  runCliHere(args, { cwd: folder, env });
const cliProcess = (args: readonly string[], env: Record<string, string> = {}) =>
  runCliProcess(args, { cwd: folder, env });

describe("help", () => {
  it("the help lists every group of commands, and each command explains its options", async () => {
    const overview = await cli(["--help"]);
    expect(overview.code).toBe(0);
    for (const group of ["serve", "dev", "account", "token", "gateway"]) {
      expect(overview.stdout).toContain(`\n  ${group} `);
    }
    const help = await cli(["token", "create", "--help"]);
    expect(help.code).toBe(0);
    expect(help.stdout).toContain("Usage: signalbox token create <name> [options]");
    expect(help.stdout).toContain("--permission NAME");
  });

  it("--version prints the version", async () => {
    const { version } = JSON.parse(
      readFileSync(join(import.meta.dirname, "../../packages/signalbox/package.json"), "utf8"),
    ) as {
      version: string;
    };
    expect(await cliProcess(["--version"])).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  });
});

describe("mistakes", () => {
  it("the code and the line are those of the process", async () => {
    expect(await cliProcess(["xyzzy"])).toEqual(await cli(["xyzzy"]));
  });

  it.each([
    [["tokn", "create"], 'unknown command "tokn create": did you mean "signalbox token create"?'],
    [["xyzzy"], 'unknown command "xyzzy": run "signalbox --help" for the list'],
    [["token", "create"], '"token create" needs <name>'],
    [["token", "create", "x"], "give at least one --permission, e.g. --permission tags.read"],
    [
      ["token", "list", "--url", "http://127.0.0.1:1"],
      "--url needs a token: give --token or set SIGNALBOX_TOKEN",
    ],
    [["token", "list", "--account"], "Option '--account <value>' argument missing"],
  ])("%j exits with 2 and prints one line", async (args, message) => {
    const { code, stderr, stdout } = await cli(args);
    expect([code, stdout, stderr]).toEqual([2, "", `signalbox: ${message}\n`]);
  });

  it("an unreachable server exits with 1 and prints one line", async () => {
    const { code, stderr } = await cli(["account", "list", "--url", "http://127.0.0.1:1", "--token", "x"]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^signalbox: cannot reach http:\/\/127\.0\.0\.1:1: .*\n$/);
  });
});

async function walkThroughAccountsAndTokens(): Promise<void> {
  const created = await cli(["account", "create", "team", "--name", "The team", "--json"]);
  expect(JSON.parse(created.stdout)).toMatchObject({ id: "team", name: "The team" });
  const again = await cli(["account", "create", "team"]);
  expect([again.code, again.stderr]).toEqual([1, "signalbox: account team already exists (code 7004)\n"]);
  const accounts = await cli(["account", "list"]);
  expect(accounts.stdout).toMatch(/^ID +NAME +CREATED\ndefault +default .*\nteam +The team .*\n$/);
  const token = (
    await cli([
      "token",
      "create",
      "ci",
      "--permission",
      "tags.read",
      "--permission",
      "tags.edit",
      "--account",
      "team",
    ])
  ).stdout;
  expect(token).toMatch(/^sbx_\w{46}\n$/);
  const list = JSON.parse((await cli(["token", "list", "--account", "team", "--json"])).stdout) as {
    id: string;
    last_four: string;
  }[];
  expect(list).toMatchObject([
    { last_four: token.trim().slice(-4), permissions: ["tags.read", "tags.edit"] },
  ]);
  const deleted = await cli(["token", "delete", list[0]?.id ?? "", "--account", "team"]);
  expect(deleted.stdout).toBe(`deleted ${list[0]?.id}\n`);
  expect((await cli(["token", "list", "--account", "team"])).stdout).toBe("no tokens\n");
}

/** As in `signalbox account list | head`, if head ends first. */
async function endsQuietly(): Promise<void> {
  const child = spawnCli(["account", "list"], { cwd: folder });
  child.stdout.destroy();
  let err = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  const [code] = (await once(child, "close")) as [number];
  expect([code, err]).toEqual([0, ""]);
}

/** Modules of the service that a command loads: each would make every command slower. */
async function loadedModules(args: readonly string[]): Promise<string[]> {
  const report = join(folder, "report.mjs");
  writeFileSync(
    report,
    `import { writeSync } from "node:fs";
     import { registerHooks } from "node:module";
     registerHooks({ load: (url, context, next) => (writeSync(2, "loaded " + url + "\\n"), next(url, context)) });`,
  );
  const { code, stderr } = await cliProcess(args, { NODE_OPTIONS: `--import=${pathToFileURL(report).href}` });
  const urls = stderr.split("\n").filter((line) => line.startsWith("loaded file:"));
  expect([code, urls.some((url) => url.includes("/cli/"))]).toEqual([0, true]);
  return urls.filter((url) => /service|zod|pino|prom-client|gateway\/(?!\.)|agents\/|webhooks\//.test(url));
}

describe("management commands", () => {
  it("management commands use the server that runs on the data folder, and the folder while no server runs, but do not create one", async () => {
    const refused = await cli(["account", "create", "team"]);
    expect([refused.code, refused.stdout, existsSync(join(folder, ".signalbox"))]).toEqual([2, "", false]);
    expect(refused.stderr).toMatch(
      /^signalbox: no server and no data folder here \(.*\); use --data-dir or --url/,
    );
    const server: ServerProcess = await startServerProcess([], { cwd: folder });
    try {
      await walkThroughAccountsAndTokens();
      const token = readFileSync(join(folder, ".signalbox", "root-token"), "utf8").trim();
      const remote = await runCliHere(["account", "list", "--json"], {
        cwd: tmpdir(),
        env: { SIGNALBOX_URL: server.url, SIGNALBOX_TOKEN: token },
      });
      expect(JSON.parse(remote.stdout)).toHaveLength(2);
      await endsQuietly();
      expect(await loadedModules(["gateway", "list"])).toEqual([]);
    } finally {
      await server.end("SIGTERM");
    }
    expect((await cli(["account", "create", "offline"])).stdout).toBe("created account offline\n");
    const { stdout, stderr } = await cli(["account", "list", "--verbose"]);
    expect(stdout).toMatch(
      /^ID +NAME +CREATED\ndefault +default .*\noffline +offline .*\nteam +The team .*\n$/,
    );
    expect(stderr).toMatch(/ \(data folder .*\.signalbox, no server was running\), the root token of /);
  });
});

describe("dev", () => {
  it("the service restarts when the configuration changes and keeps its data", async () => {
    const config = join(folder, "signalbox.config.json");
    writeFileSync(config, "{}");
    // What the service writes to its data folder is no change, wherever the folder is.
    writeFileSync(join(folder, "my.env"), "SIGNALBOX_DATA_DIR=./own\n");
    const dev = spawnCli(["dev", "--json", "--port", "0", "--env-file", "my.env"], { cwd: folder });
    let reports = "";
    dev.stderr.setEncoding("utf8").on("data", (text: string) => (reports += text));
    const lines: { url: string; pid: number }[] = [];
    dev.stdout.setEncoding("utf8").on("data", (text: string) => {
      for (const line of text.trim().split("\n"))
        lines.push(JSON.parse(line) as { url: string; pid: number });
    });
    // A failed try must not leave it running: it would hold the data folder against the second one.
    onTestFinished(() => void dev.kill("SIGKILL"));
    await expect.poll(() => lines.length).toBe(1);
    const token = readFileSync(join(folder, "own", "root-token"), "utf8").trim();
    // Written again from time to time, because a slow file watcher may start after the first write; not so often that a restart never ends.
    let n = 0;
    await expect
      .poll(
        () => {
          if (n % 10 === 0) writeFileSync(config, JSON.stringify({ listener: { maxConnections: 100 + n } }));
          n += 1;
          return lines.length;
        },
        { interval: 1000 },
      )
      .toBeGreaterThan(1);
    const last = lines.at(-1);
    expect(last?.pid).not.toBe(lines[0]?.pid);
    await expect
      .poll(() =>
        fetch(`${lines.at(-1)?.url}/accounts`, { headers: { authorization: `Bearer ${token}` } }).then(
          (r) => r.status,
          () => 0,
        ),
      )
      .toBe(200);
    await expect.poll(() => reports).toMatch(/^ready in \d+\.\d s$/m);
    const exit = once(dev, "exit");
    dev.kill("SIGINT");
    expect((await exit)[0]).toBe(0);
    expect(reports).toContain("signalbox.config.json changed, restarting");
    // Not at every start.
    expect(reports.match(/WEBHOOK_SECRET is not set/g)).toHaveLength(1);
    expect(reports).not.toMatch(/own\/\S+ (?:and \d+ more )?changed/);
    rmSync(config);
  });
});
