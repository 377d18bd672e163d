/**
 * Runs the shell blocks of one page as a reader would: in order, in one folder, with one server.
 *
 * The server is in this process unless the page starts one itself (`signalbox serve …`); then it is a real process. The port 8787 of the pages
 * is replaced by a free one. Variables that a block sets are there in the next one.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { runCli } from "../../../packages/signalbox/src/cli/main.ts";
import { freePort } from "../../support/free-port.ts";
import { CLI, spawnCli } from "../../support/server-process.ts";
import { ROOT_TOKEN, startTestServer } from "../../support/test-server.ts";
import { providersAt, startChatProvider } from "./chat-provider.ts";
import { type CodeBlock, ROOT } from "./code-blocks.ts";
import { withoutCoveredLines } from "./covered-lines.ts";

export interface BlockResult {
  readonly code: number | null;
  readonly output: string;
  /** The statuses of the block's calls by curl, in order. */
  readonly statuses: readonly number[];
}

export interface DocPage {
  run(block: CodeBlock): Promise<BlockResult>;
  close(): Promise<void>;
}

/** A block that waits for something that does not come is ended. */
const BLOCK_LIMIT_MS = 600_000;

interface RunningServer {
  stop(): Promise<unknown>;
}

export async function openDocPage(environment: Readonly<Record<string, string>>): Promise<DocPage> {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-docs-"));
  for (const name of ["node_modules", "examples"]) symlinkSync(join(ROOT, name), join(folder, name));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const statusFile = `${folder}.statuses`;
  const stateFile = `${folder}.state`;
  writeFileSync(stateFile, "");
  mkdirSync(join(folder, ".signalbox"), { mode: 0o700 });
  writeFileSync(join(folder, ".signalbox/root-token"), ROOT_TOKEN, { mode: 0o600 });
  const provider = await startChatProvider();
  let server: RunningServer | null = null;

  const withPort = (code: string) =>
    withoutCoveredLines(code).replaceAll(/(127\.0\.0\.1|localhost):8787/g, `127.0.0.1:${port}`);

  async function startOwn(): Promise<void> {
    server ??= await startTestServer({
      port,
      dataDir: join(folder, ".signalbox"),
      environment,
      file: { providers: providersAt(provider.url) },
    });
  }

  async function serve(args: readonly string[], cwd: string, env: Record<string, string>): Promise<number> {
    await server?.stop();
    const child = spawnCli(["serve", ...args.slice(1), "--json", "--port", String(port)], { cwd, env });
    server = {
      stop: async () => {
        const end = once(child, "exit");
        if (child.kill("SIGTERM")) await end;
      },
    };
    child.stderr.pipe(process.stderr);
    const [first] = (await Promise.race([once(child.stdout, "data"), once(child, "exit")])) as [unknown];
    return Buffer.isBuffer(first) ? 0 : Number(first);
  }

  /** What the `signalbox` of a page calls. */
  const commands = createServer((request, response) => {
    void (async () => {
      const [answer = "", cwd = "", count = "0", ...rest] = (await text(request)).split("\0");
      const args = rest.slice(0, Number(count));
      // The list ends with an empty text, and Node crashes with a variable without a name.
      const lines = rest.slice(Number(count)).filter((line) => line !== "");
      const env = Object.fromEntries(lines.map((line) => splitAt(line, "=")));
      let out = "";
      let err = "";
      const isServer = args[0] === "serve" || args[0] === "dev";
      if (!isServer) await startOwn();
      const code = isServer
        ? await serve(args, cwd, env)
        : await runCli(args, {
            out: { write: (chunk: string) => (out += chunk) },
            err: { write: (chunk: string) => (err += chunk) },
            environment: env,
            workingFolder: cwd,
          });
      writeFileSync(join(answer, "out"), out);
      writeFileSync(join(answer, "err"), err);
      writeFileSync(join(answer, "code"), String(code));
      response.end();
    })();
  });
  const socket = `${folder}.socket`;
  await listen(commands, socket);

  const shellEnvironment = {
    ...environment,
    PATH: `${join(import.meta.dirname, "bin")}:${dirname(process.execPath)}:${process.env["PATH"] ?? ""}`,
    HOME: folder,
    SIGNALBOX_URL: url,
    SIGNALBOX_TOKEN: ROOT_TOKEN,
    DOCS_TEST_SOCKET: socket,
    DOCS_TEST_STATUSES: statusFile,
    DOCS_TEST_CURL: "/usr/bin/curl",
    DOCS_TEST_CLI: CLI,
  };

  return {
    async run(block) {
      if (block.file !== null) {
        mkdirSync(dirname(join(folder, block.file)), { recursive: true });
        writeFileSync(join(folder, block.file), withPort(block.code));
        return { code: 0, output: "", statuses: [] };
      }
      const usesServer = /8787|signalbox/.test(block.code) && !/signalbox (serve|dev)/.test(block.code);
      if (usesServer) await startOwn();
      writeFileSync(statusFile, "");
      const script = `set -a; . ${stateFile}; set -euo pipefail\n${withPort(block.before)}\n${withPort(block.code)}\nset +e; export -p > ${stateFile}`;
      const shell = spawn("bash", ["-c", script], {
        cwd: folder,
        timeout: BLOCK_LIMIT_MS,
        env: shellEnvironment,
        stdio: ["ignore", "pipe", "pipe"],
      });
      const [stdout, stderr] = await Promise.all([text(shell.stdout), text(shell.stderr)]);
      if (shell.exitCode === null && shell.signalCode === null) await once(shell, "exit");
      const statuses = readFileSync(statusFile, "utf8")
        .split("\n")
        .filter((line) => /^\d{3} http/.test(line))
        .map((line) => Number.parseInt(line, 10));
      return { code: shell.exitCode, output: stdout + stderr, statuses };
    },
    async close() {
      commands.close();
      await server?.stop();
      await provider.close();
      for (const path of [folder, statusFile, stateFile, socket])
        rmSync(path, { recursive: true, force: true });
    },
  };
}

async function listen(server: Server, socket: string): Promise<void> {
  server.listen(socket);
  await once(server, "listening");
}

function splitAt(line: string, separator: string): [string, string] {
  const at = line.indexOf(separator);
  return at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1)];
}
