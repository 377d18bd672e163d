/** The `signalbox` command: help, exit codes, and management through a running server or the data folder. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
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

const cli = (args: readonly string[], env: Record<string, string> = {}) =>
  runCliProcess(args, { cwd: folder, env });

describe("help", () => {
  it("the help lists every command, and each command explains its options", async () => {
    const overview = await cli(["--help"]);
    expect(overview.code).toBe(0);
    for (const command of ["serve", "dev", "account create", "token create <name>", "token revoke <id>"]) {
      expect(overview.stdout).toContain(`  ${command}`);
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
    expect((await cli(["--version"])).stdout).toBe(`${version}\n`);
  });
});

describe("mistakes", () => {
  it.each([
    [["tokn", "create"], 'unknown command "tokn create": did you mean "signalbox token create"?'],
    [["xyzzy"], 'unknown command "xyzzy": run "signalbox --help" for the list'],
    [["token", "create"], '"token create" needs <name>'],
    [["token", "create", "x"], "give at least one --permission, e.g. --permission tags.read"],
    [
      ["token", "list", "--url", "http://127.0.0.1:1"],
      "--url needs a token: give --token or set SIGNALBOX_TOKEN",
    ],
    [["token", "list", "--json", "--account"], "Option '--account <value>' argument missing"],
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

/** The same commands, with and without a server on the data folder. */
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
  const revoked = await cli(["token", "revoke", list[0]?.id ?? "", "--account", "team"]);
  expect(revoked.stdout).toBe(`revoked ${list[0]?.id}\n`);
  expect((await cli(["token", "list", "--account", "team"])).stdout).toBe("no tokens\n");
}

describe("management commands", () => {
  it("management commands work on the data folder while no server runs", async () => {
    await walkThroughAccountsAndTokens();
  });

  it("management commands use the server that runs on the data folder", async () => {
    rmSync(join(folder, ".signalbox"), { recursive: true, force: true });
    const server: ServerProcess = await startServerProcess([], { cwd: folder });
    try {
      await walkThroughAccountsAndTokens();
      const token = readFileSync(join(folder, ".signalbox", "root-token"), "utf8").trim();
      const remote = await runCliProcess(["account", "list", "--json"], {
        cwd: tmpdir(),
        env: { SIGNALBOX_URL: server.url, SIGNALBOX_TOKEN: token },
      });
      expect(JSON.parse(remote.stdout)).toHaveLength(2);
    } finally {
      await server.end("SIGTERM");
    }
  });
});

describe("dev", () => {
  it("the service restarts when the configuration changes and keeps its data", async () => {
    rmSync(join(folder, ".signalbox"), { recursive: true, force: true });
    const config = join(folder, "signalbox.config.json");
    writeFileSync(config, "{}");
    const dev = spawnCli(["dev", "--json", "--port", "0"], { cwd: folder });
    const lines: { url: string; pid: number }[] = [];
    dev.stdout.setEncoding("utf8").on("data", (text: string) => {
      for (const line of text.trim().split("\n"))
        lines.push(JSON.parse(line) as { url: string; pid: number });
    });
    await expect.poll(() => lines.length, { timeout: 20_000 }).toBe(1);
    const token = readFileSync(join(folder, ".signalbox", "root-token"), "utf8").trim();
    // Written again on every attempt, because a slow file watcher may start after the first write.
    let n = 0;
    await expect
      .poll(
        () => {
          writeFileSync(config, JSON.stringify({ listener: { maxConnections: 100 + n++ } }));
          return lines.length;
        },
        { timeout: 20_000, interval: 1000 },
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
    const exit = once(dev, "exit");
    dev.kill("SIGINT");
    expect((await exit)[0]).toBe(0);
    rmSync(config);
  });
});
