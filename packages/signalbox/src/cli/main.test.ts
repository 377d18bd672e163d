/** The command line without a server: help, formats, refusals, and what a command says about the server that it used. */
import { createServer, type Server } from "node:http";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { COMMANDS } from "./command-list.ts";
import { runCli } from "./main.ts";
import { OutputClosedError } from "./output.ts";

let folder: string;
let server: Server;
let url: string;
/** Results by path; anything else is not found. */
let results: Record<string, unknown>;
let failure: { readonly code: number; readonly status: number; readonly message: string };

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-main-"));
  server = createServer((request, response) => {
    const result = results[decodeURIComponent((request.url ?? "").split("?")[0] ?? "")];
    const isFound = result !== undefined;
    response.writeHead(isFound ? 200 : failure.status);
    response.end(
      JSON.stringify({ success: isFound, errors: isFound ? [] : [failure], messages: [], result }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  results = {};
  failure = { code: 7003, status: 404, message: "Not found" };
});

interface Options {
  readonly env?: Record<string, string>;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

async function run(args: readonly string[], { env = {}, isTTY = false, columns }: Options = {}) {
  let out = "";
  let err = "";
  const code = await runCli(args, {
    out: { write: (text) => (out += text), isTTY, columns },
    err: { write: (text) => (err += text), isTTY },
    environment: env,
    workingFolder: folder,
  });
  return { code, out, err };
}

const remote = (...args: readonly string[]) => [...args, "--url", url, "--token", "t"];

describe("help", () => {
  it.each([
    [[], /^Signalbox /],
    [["--help"], /^Signalbox /],
    [["-h"], /^Signalbox /],
    [["help"], /^Signalbox /],
    [["help", "--all"], /\n {2}gateway set <id> /],
    [["gateway"], /Usage: signalbox gateway <command>/],
    [["gateway", "--help"], /Usage: signalbox gateway <command>/],
    [["agents", "-h"], /\n {2}agents show <agent> <name> /],
    [["agent"], /Usage: signalbox agents <command>/],
    [["help", "gateways"], /Usage: signalbox gateway <command>/],
    [["help", "gateway", "set"], /Usage: signalbox gateway set <id>/],
    [["help", "serve"], /Usage: signalbox serve /],
    [["gateway", "set", "--help"], /--rate-technique fixed\|sliding/],
    [["gateway", "set", "x", "-h"], /Usage: signalbox gateway set <id>/],
    [["token", "delete", "--help"], /Usage: signalbox token delete <id>/],
  ])("%j", async (args, text) => {
    const { code, out, err } = await run(args);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(text);
  });

  it("every command prints its help without a server", async () => {
    for (const { words } of COMMANDS) {
      const { code, out } = await run([...words, "--help"]);
      expect([words, code]).toEqual([words, 0]);
      expect(out).toContain(`Usage: signalbox ${words.join(" ")}`);
    }
    expect(readdirSync(folder)).toEqual([]);
  });

  it.each([
    [["gatway"], 'unknown command "gatway": did you mean "signalbox gateway"?'],
    [["gateway", "sett"], 'unknown command "gateway sett": did you mean "signalbox gateway set"?'],
    [["help", "nothing"], 'unknown command "nothing": run "signalbox --help" for the list'],
  ])("%j is unknown, with a hint", async (args, message) => {
    expect(await run(args)).toEqual({ code: 2, out: "", err: `signalbox: ${message}\n` });
  });

  it("the version is printed by version, --version and -v", async () => {
    const all = await Promise.all([["version"], ["--version"], ["-v"]].map((args) => run(args)));
    expect(new Set(all.map(({ out }) => out)).size).toBe(1);
    expect(JSON.parse((await run(["version", "--json"])).out)).toMatchObject({ node: process.version });
  });
});

describe("a folder without data", () => {
  it("is refused by commands that manage a server, and stays empty", async () => {
    for (const args of [
      ["gateway", "set", "g", "--logs", "on"],
      ["token", "list"],
      ["keys", "rotate-master"],
    ]) {
      const { code, out, err } = await run(args);
      expect([code, out]).toEqual([2, ""]);
      expect(err).toContain(
        `no server and no data folder here (${join(folder, ".signalbox")}); use --data-dir`,
      );
    }
    const other = await run(["account", "list"], {
      env: { SIGNALBOX_DATA_DIR: "other", DATABASE_URL: "postgres://x" },
    });
    expect(other.err).toContain(`(${join(folder, "other")})`);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("is not taken for a data folder because it has a stale file of a server", async () => {
    writeFileSync(join(folder, "server.json"), '{"url":"http://127.0.0.1:1","pid":1}');
    const { code, err } = await run(["account", "list", "--data-dir", "."]);
    expect([code, err]).toEqual([2, expect.stringContaining("no server and no data folder here")]);
    rmSync(join(folder, "server.json"));
    expect(existsSync(join(folder, "signalbox.db"))).toBe(false);
    rmSync(join(folder, "lock"), { force: true });
  });
});

describe("the format", () => {
  const accounts = [{ id: "a", name: "T\u001b[2J\u202e", created_at: "2026" }];
  it("is a table, or the document of the interface with --json or --output json", async () => {
    results = { "/accounts": accounts };
    expect((await run(remote("account", "list", "--output", "table"))).out).toBe(
      "ID  NAME  CREATED\na   T[2J  2026\n",
    );
    for (const format of [
      ["--json"],
      ["--output", "json"],
      ["--output=json"],
      ["--json", "--output", "json"],
    ]) {
      expect(JSON.parse((await run(remote("account", "list", ...format))).out)).toEqual(accounts);
    }
  });

  it("is checked", async () => {
    expect((await run(["version", "--output", "xml"])).err).toBe(
      'signalbox: --output: expected table or json, found "xml"\n',
    );
    expect((await run(["version", "--json", "--output", "table"])).code).toBe(2);
  });

  it("of an error is a document, too", async () => {
    const { code, out, err } = await run(remote("account", "list", "--json"));
    expect([code, out]).toEqual([1, ""]);
    expect(JSON.parse(err)).toEqual({
      success: false,
      errors: [{ code: 7003, message: "Not found", reason: "server" }],
      messages: [],
      result: null,
      exit_code: 1,
    });
    expect(JSON.parse((await run(["nothing", "--json"])).err)).toMatchObject({
      errors: [{ reason: "usage" }],
      exit_code: 2,
    });
    const serve = await run(["serve", "--json", "--port", "x"]);
    expect(JSON.parse(serve.err)).toMatchObject({ errors: [{ reason: "config" }], exit_code: 2 });
    expect(readdirSync(folder)).toEqual([]);
  });

  it("fits the terminal, and only a terminal", async () => {
    results = { "/accounts": [{ ...accounts[0], created_at: "x".repeat(100) }] };
    const narrow = await run(remote("account", "list"), { isTTY: true, columns: 40 });
    expect(narrow.out.split("\n").map((line) => line.length)).toEqual([17, 40, 0]);
    expect((await run(remote("account", "list"))).out).toContain("x".repeat(100));
  });
});

describe("the server that a command used", () => {
  it("is named on a terminal or with --verbose, with the account, and colours can be off", async () => {
    results = { "/accounts/team/tokens": [] };
    const args = remote("token", "list", "--account", "team");
    const line = `server http://${url} (--url), account team`;
    expect((await run(args)).err).toBe("");
    expect((await run([...args, "--verbose"])).err).toBe(`${line}, the token of --token\n`);
    expect((await run(args, { isTTY: true })).err).toBe(`\u001b[2m${line}\u001b[22m\n`);
    expect((await run(args, { isTTY: true, env: { NO_COLOR: "1" } })).err).toBe(`${line}\n`);
  });

  it("and the origin of the token are named if the token is refused, never the token", async () => {
    failure = { code: 10000, status: 401, message: "Authentication error" };
    const env = { SIGNALBOX_TOKEN: "sesame", SIGNALBOX_URL: url };
    for (const [args, given, origin] of [
      [remote("account", "list"), {}, "the token of --token"],
      [["account", "list"], env, "the token in SIGNALBOX_TOKEN"],
    ] as const) {
      const { err } = await run(args, { env: given });
      expect(err).toBe(`signalbox: Authentication error: http://${url} refused ${origin} (code 10000)\n`);
    }
  });

  it("is told apart by its scheme", async () => {
    const { err } = await run(["account", "list", "--url", `https://${url}`, "--token", "t"]);
    expect(err).toBe(
      `signalbox: cannot reach https://${url}: the server answers without TLS; use http://${url}\n`,
    );
  });
});

describe("a name that the server does not know", () => {
  const agents = ["webhook-agent", "counter"].map((name) => ({ name, class_name: "C", callable: [] }));
  it.each([
    [
      ["agents", "show", "webhok-agent", "x"],
      3001,
      ': no agent "webhok-agent", did you mean "webhook-agent"?',
    ],
    [["agents", "show", "zzz", "x"], 3001, ': no agent "zzz"; there are webhook-agent, counter'],
    [["gateway", "show", "defalt"], 7003, ': no gateway "defalt", did you mean "default"?'],
    [["logs", "list", "--gateway", "defalt"], 7003, ': no gateway "defalt", did you mean "default"?'],
    [["token", "show", "zzz"], 7003, ""],
    [["tags", "get", "gateway", "x"], 1006, ' "gateway": did you mean "ai_gateway"?'],
    [["tags", "get", "tokens", "x"], 1006, ' "tokens": did you mean "api_token"?'],
    [["tags", "get", "wrker", "x"], 1006, ' "wrker": did you mean "worker"?'],
  ])("%j", async (args, code, hint) => {
    failure = { code, status: code === 1006 ? 400 : 404, message: "No" };
    results = {
      "/accounts/default/agents": agents,
      "/accounts/default/ai-gateway/gateways": [{ id: "default" }],
      "/accounts/default/tokens": [{ id: "tok-123456", name: "ci" }],
    };
    expect((await run(remote(...args))).err).toBe(`signalbox: No${hint} (code ${code})\n`);
  });

  it("has no hint if the server does not tell its names", async () => {
    failure = { code: 3001, status: 404, message: "No" };
    expect((await run(remote("agents", "show", "x", "y"))).err).toBe("signalbox: No (code 3001)\n");
  });
});

it("a closed output ends a command without a message; a lost one is an error", async () => {
  results = { "/accounts": [] };
  for (const [code, expected] of [
    ["EPIPE", { exit: 0, err: "" }],
    ["ENOSPC", { exit: 1, err: "signalbox: cannot write the output: full\n" }],
  ] as const) {
    let err = "";
    const exit = await runCli(remote("account", "list"), {
      out: {
        write: () => {
          throw new OutputClosedError(Object.assign(new Error("full"), { code }));
        },
      },
      err: { write: (text) => (err += text) },
      environment: {},
      workingFolder: folder,
    });
    expect({ exit, err }).toEqual(expected);
  }
});
