/** Starting, stopping and configuring the real process. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.ts";
import { readMetric } from "../support/read-metric.ts";
import { runCliHere } from "../support/run-cli.ts";
import {
  runCliProcess,
  type ServerProcess,
  spawnCli,
  startServerProcess,
} from "../support/server-process.ts";
import { startTestServer } from "../support/test-server.ts";
import { openTestPostgres } from "../support/test-postgres.ts";

let folder: string;
let running: ServerProcess[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-run-"));
});
afterEach(async () => {
  for (const server of running) await server.kill();
  running = [];
  rmSync(folder, { recursive: true, force: true });
});

const ROOT = join(import.meta.dirname, "../..");
const PRELOAD = pathToFileURL(join(import.meta.dirname, "../support/terminal-preload.ts")).href;
const ON_A_TERMINAL = { NODE_OPTIONS: `--import=${PRELOAD}` };

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function start(args: readonly string[] = [], env: Record<string, string> = {}): Promise<ServerProcess> {
  const server = await startServerProcess(["--data-dir", join(folder, "data"), ...args], {
    env,
    cwd: folder,
  });
  running.push(server);
  return server;
}

const serve = (args: readonly string[], env: Record<string, string> = {}) =>
  runCliProcess(["serve", "--port", "0", "--data-dir", join(folder, "data"), ...args], { env, cwd: folder });
/** For settings with which nothing is started: in this process, because a process per setting costs a second. */
const refuse = (args: readonly string[], env: Record<string, string> = {}) =>
  runCliHere(["serve", "--data-dir", join(folder, "data"), ...args], { env, cwd: folder });

it("the serving process loads neither Node's TypeScript loader nor fetch nor other commands, even at the first start", async () => {
  const report = join(folder, "report.mjs");
  writeFileSync(
    report,
    `import { writeSync } from "node:fs";
     import { registerHooks } from "node:module";
     const files = [];
     registerHooks({ load: (url, context, next) => (files.push(url), next(url, context)) });
     process.once("exit", () => writeSync(2, "loaded: " + [...process.moduleLoadList, ...files].join("\\n")));`,
  );
  const server = await start([], {
    SIGNALBOX_NO_REEXEC: "",
    NODE_COMPILE_CACHE: join(folder, "cache"),
    NODE_OPTIONS: `--import=${pathToFileURL(report).href}`,
  });
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  await server.end("SIGTERM");
  expect(server.stderr()).toContain("loaded: ");
  expect(server.stderr()).not.toContain("amaro");
  expect(server.stderr()).not.toContain("undici");
  expect(server.stderr()).toContain("/src/cli/serve.ts");
  expect(server.stderr()).not.toMatch(/\/src\/cli\/(?:gateway|command-list)\.ts|\/client\/src\//);
});

describe("the first start", () => {
  /** What a start prints. */
  const printed = async (env: Record<string, string>) => {
    const args = ["serve", "--port", "0", "--data-dir", join(folder, "data")];
    const child = spawnCli(args, { cwd: folder, env });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
    await expect.poll(() => output).toMatch(/\n\n$/);
    child.kill("SIGTERM");
    await once(child, "exit");
    return output;
  };

  it("the first start creates a root token, prints it once on a terminal and stores it in a file with mode 0600", async () => {
    const first = await printed(ON_A_TERMINAL);
    const file = join(folder, "data", "root-token");
    const token = readFileSync(file, "utf8").trim();
    expect(first).toContain(token);
    expect(first).toMatch(/on http:\/\/127\.0\.0\.1:\d+/);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(await printed(ON_A_TERMINAL)).not.toContain(token);
  });

  it("output that is no terminal, and is kept in some log, has no credential: it says how to get one", async () => {
    const output = await printed({});
    const file = join(folder, "data", "root-token");
    expect(output).not.toContain(readFileSync(file, "utf8").trim());
    expect(output).not.toContain("code=");
    expect(output).toContain(file);
    expect(output).toContain(`signalbox login-link --data-dir ${join(folder, "data")}`);
    expect(await printed({})).not.toContain(file);
  });
});

it("no other user can read a file of the data folder, also of an earlier version", async () => {
  const dataDir = join(folder, "data");
  // The folder may be one that the operator has made.
  mkdirSync(dataDir, { mode: 0o755 });
  const readable = () =>
    readdirSync(dataDir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => (statSync(path).mode & 0o077) !== 0);
  const start = async () => {
    const server = await startServerProcess(["--data-dir", dataDir], { cwd: folder });
    running.push(server);
    return server;
  };
  const use = async ({ url }: ServerProcess) => {
    const called = await fetch(`${url}/v1/default/default/echo/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "echo", messages: [{ role: "user", content: "hello" }] }),
    });
    expect(called.status).toBe(200);
  };
  const first = await start();
  await use(first);
  expect(existsSync(join(dataDir, "signalbox.db-wal"))).toBe(true);
  expect(readable()).toEqual([]);
  await first.end("SIGKILL");
  for (const name of ["signalbox.db", "signalbox.db-wal", "signalbox.db-shm", "lock"])
    chmodSync(join(dataDir, name), 0o644);
  const second = await start();
  await use(second);
  await second.end("SIGTERM");
  expect(readable()).toEqual([]);
});

describe("flags and environment", () => {
  it("port, host and data folder are set by flags and environment, and flags win", async () => {
    const port = await freePort();
    const child = spawnCli(["serve", "--json"], {
      cwd: folder,
      env: { PORT: String(port), HOST: "127.0.0.1", SIGNALBOX_DATA_DIR: join(folder, "from-env") },
    });
    const [line] = (await once(child.stdout.setEncoding("utf8"), "data")) as [string];
    expect(JSON.parse(line)).toMatchObject({ url: `http://127.0.0.1:${port}` });
    expect(existsSync(join(folder, "from-env", "signalbox.db"))).toBe(true);
    child.kill("SIGTERM");
    await once(child, "exit");
  });

  it("settings are read from a TypeScript configuration file and an env file in the working folder, and a root token from there is not written to disk", async () => {
    writeFileSync(
      join(folder, "signalbox.config.ts"),
      `const config: { listener: { maxBodyBytes: number } } = { listener: { maxBodyBytes: 2048 } };\nexport default config;\n`,
    );
    writeFileSync(join(folder, ".env.local"), "SIGNALBOX_ROOT_TOKEN=token-from-the-env-file\n");
    const server = await start(["--env-file", ".env.local"]);
    const response = await fetch(`${server.url}/accounts`, {
      method: "POST",
      headers: { authorization: "Bearer token-from-the-env-file" },
      body: "x".repeat(3000),
    });
    expect(response.status).toBe(415);
    const large = await fetch(`${server.url}/accounts`, {
      method: "POST",
      headers: { authorization: "Bearer token-from-the-env-file", "content-type": "application/json" },
      body: "x".repeat(3000),
    });
    expect(large.status).toBe(413);
    expect(existsSync(join(folder, "data", "root-token"))).toBe(false);
  });
});

describe("invalid configuration: exit code 2 and one line that names the setting", () => {
  it.each([
    [["--port", "70000"], /^signalbox: --port: expected a number from 0 to 65535, found "70000"\n$/],
    [["--port", "http"], /^signalbox: --port: expected a number/],
    [["--log-level", "loud"], /^signalbox: --log-level: expected one of .*, found "loud"\n$/],
    [["--database-url", "mysql://x"], /^signalbox: --database-url \(DATABASE_URL\): expected postgres:/],
    [
      ["--config", "missing.json"],
      /^signalbox: --config: expected a file, found nothing at .*missing\.json\n$/,
    ],
    [["--prot", "1"], /^signalbox: unknown option --prot, did you mean --port\?\n$/],
    [["extra"], /^signalbox: "serve" takes no argument "extra"\n$/],
  ])("%j", async (args, message) => {
    const { code, stderr, stdout } = await refuse(args);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(message);
  });

  it("the code and the line are those of the process", async () => {
    expect(await serve(["--log-level", "loud"])).toEqual(await refuse(["--log-level", "loud"]));
  });

  it("an environment variable is named in the error", async () => {
    const port = await refuse([], { PORT: "x" });
    expect([port.code, port.stderr]).toEqual([
      2,
      'signalbox: PORT: expected a number from 0 to 65535, found "x"\n',
    ]);
    const token = await refuse([], { SIGNALBOX_ROOT_TOKEN: "short" });
    expect([token.code, token.stderr]).toEqual([
      2,
      "signalbox: SIGNALBOX_ROOT_TOKEN: expected at least 20 characters, found 5\n",
    ]);
  });

  it.each([
    [{ listner: {} }, 'unknown key "listner", did you mean "listener"?'],
    [{ listener: { maxBodyByte: 1 } }, 'unknown key "listener.maxBodyByte", did you mean "maxBodyBytes"?'],
    [{ listener: { zzz: 1 } }, 'unknown key "listener.zzz"'],
    [
      { listener: { maxConnections: "many" } },
      'listener.maxConnections: Invalid input: expected number, received string, found "many"',
    ],
    [[], "the file: Invalid input"],
    [{ tags: { missing: 403 } }, "tags.missing: expected 500, 404 or 200, found 403"],
  ])("a configuration file with %j", async (content, message) => {
    writeFileSync(join(folder, "signalbox.config.json"), JSON.stringify(content));
    const { code, stderr } = await refuse([]);
    expect(code).toBe(2);
    // The file as a whole has no line.
    const line = Array.isArray(content) ? "" : ":1";
    expect(stderr).toContain(`signalbox.config.json${line}: ${message}`);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });

  it("a missing env file", async () => {
    const npm = spawnSync(
      "npm",
      ["start", "--silent", "--", "--port", "0", "--data-dir", join(folder, "data"), "--env-file", "nofile"],
      { cwd: ROOT, encoding: "utf8" },
    );
    expect(npm.status).toBe(2);
    expect(npm.stderr).toContain("signalbox: --env-file: cannot read nofile\n");
  });

  it("a configuration file that cannot be loaded", async () => {
    writeFileSync(join(folder, "broken.ts"), "export default {{{");
    const { code, stderr } = await refuse(["--config", "broken.ts"]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^signalbox: .*broken\.ts: cannot be loaded: /);
  });
});

describe("an unusable data folder or port: exit code 1 and one line", () => {
  it("a folder that cannot be created or written", async () => {
    writeFileSync(join(folder, "data"), "a file");
    const { code, stderr } = await serve([]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^signalbox: cannot create the data folder .*\n$/);
  });

  it("a folder or a port in use by another process, named with its pid, and the files stay unchanged; the folder of a killed one can be used", async () => {
    // Without it, a start writes a generated one.
    const env = { WEBHOOK_SECRET: "secret-of-both-processes" };
    const server = await start([], env);
    const files = () => readdirSync(join(folder, "data"));
    const token = () => readFileSync(join(folder, "data", "root-token"), "utf8");
    const before = [files(), token()];
    const { code, stderr } = await serve([], env);
    expect([files(), token()]).toEqual(before);
    expect(code).toBe(1);
    expect(stderr).toBe(
      `signalbox: the data folder ${join(folder, "data")} is in use by the process ${server.pid} at ${server.url}\n`,
    );
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);

    const { port } = new URL(server.url);
    const other = await runCliProcess(["serve", "--port", port, "--data-dir", join(folder, "data2")], {
      cwd: folder,
    });
    expect(other.code).toBe(1);
    expect(other.stderr).toMatch(
      new RegExp(
        `^signalbox: cannot listen on 127.0.0.1:${port}: the process ${server.pid} .* uses port ${port}.*\\n$`,
      ),
    );
    await server.end("SIGKILL");
    expect((await fetch(`${(await start()).url}/healthz`)).status).toBe(200);
  });

  it("a folder of a newer version", async () => {
    await (await startTestServer({ dataDir: join(folder, "data") })).stop();
    const database = new DatabaseSync(join(folder, "data", "signalbox.db"));
    database.exec("INSERT INTO schema_migrations VALUES (9999, 'from-the-future', 'x', 0)");
    database.close();
    const { code, stderr } = await serve([]);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^signalbox: the database was written by a newer version \(it has migration 9999-from-the-future, .*\n$/,
    );
  });
});

describe("starting and stopping", () => {
  it.each(["SIGTERM", "SIGINT"] as const)(
    "--json prints one object with url and pid when the server accepts requests; %s ends it with exit code 0 and releases the folder",
    async (signal) => {
      const server = await start();
      expect(server.pid).toBe(server.child.pid);
      // Without a host option the server listens on loopback only.
      expect(new URL(server.url).hostname).toBe("127.0.0.1");
      expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
      expect(await server.end(signal)).toBe(0);
      expect(existsSync(join(folder, "data", "server.json"))).toBe(false);
    },
  );

  it("SIGTERM to `npm start` leaves no server behind", async () => {
    const data = join(folder, "data");
    const npm = spawn("npm", ["start", "--silent", "--", "--json", "--port", "0", "--data-dir", data], {
      cwd: ROOT,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = (await once(npm.stdout.setEncoding("utf8"), "data")) as [string];
    const { url, pid } = JSON.parse(line) as { url: string; pid: number };
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    npm.kill("SIGTERM");
    await once(npm, "close");
    await expect.poll(() => isRunning(pid)).toBe(false);
    expect(existsSync(join(data, "server.json"))).toBe(false);
  });

  it("a running request finishes while new connections are refused", async () => {
    const server = await start([], { SIGNALBOX_ROOT_TOKEN: "root-token-for-stopping" });
    const port = Number(new URL(server.url).port);
    const body = '{"id":"late"}';
    const socket = connect(port, "127.0.0.1");
    let answer = "";
    socket.setEncoding("utf8").on("data", (text: string) => (answer += text));
    // The request is half sent when the signal arrives; the rest follows.
    socket.write(
      `POST /accounts HTTP/1.1\r\nhost: x\r\nauthorization: Bearer root-token-for-stopping\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 3)}`,
    );
    await expect.poll(() => readMetric(server, "signalbox_http_connections")).toBe(2);
    server.child.kill("SIGTERM");
    await expect
      .poll(() =>
        fetch(`${server.url}/healthz`).then(
          () => "up",
          () => "refused",
        ),
      )
      .toBe("refused");
    socket.write(body.slice(3));
    const [code] = (await once(server.child, "exit")) as [number];
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).toMatch(/\r\nconnection: close\r\n/i);
    expect(code).toBe(0);
  });

  it("requests that are not finished are cut off after the grace period", async () => {
    writeFileSync(
      join(folder, "signalbox.config.json"),
      JSON.stringify({ listener: { gracePeriodMs: 100 } }),
    );
    const server = await start();
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    socket.write("GET /healthz HTTP/1.1\r\nhost: x\r\n");
    const closed = once(socket, "close");
    // A connection that the server has not accepted yet would be reset instead of cut off.
    await expect.poll(() => readMetric(server, "signalbox_http_connections")).toBe(2);
    expect(await server.end("SIGTERM")).toBe(0);
    await closed;
  });
});

describe("on PostgreSQL", () => {
  it("the service uses PostgreSQL, keeps accounts over a restart and refuses a second process, which creates no token", async () => {
    const { url, drop } = await openTestPostgres();
    const env = { SIGNALBOX_ROOT_TOKEN: "root-token-on-postgres", DATABASE_URL: url };
    const call = (server: ServerProcess, method: string, path: string, body?: object) =>
      fetch(server.url + path, {
        method,
        headers: { authorization: `Bearer ${env.SIGNALBOX_ROOT_TOKEN}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    const first = await start([], env);
    expect((await call(first, "POST", "/accounts", { id: "kept" })).status).toBe(200);
    mkdirSync(join(folder, "elsewhere"));
    // A root token of its own would be written.
    const second = await runCliProcess(["serve", "--port", "0", "--data-dir", join(folder, "elsewhere")], {
      env: { DATABASE_URL: url, WEBHOOK_SECRET: "secret-of-the-refused-process" },
      cwd: folder,
    });
    expect([second.code, second.stderr]).toEqual([
      1,
      "signalbox: the PostgreSQL database is in use by another Signalbox process; to run several, set the same SIGNALBOX_CLUSTER_SECRET on all of them\n",
    ]);
    const left = readdirSync(join(folder, "elsewhere")).filter((name) => !name.startsWith("lock"));
    expect(left).toEqual([]);
    await first.end("SIGKILL");
    const again = await start([], env);
    expect((await call(again, "GET", "/accounts/kept")).status).toBe(200);
    await again.end("SIGTERM");
    await drop();
  });
});
