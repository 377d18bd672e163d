/**
 * What users install: the archives of a release, published to a registry and installed from it by name, with dependencies from the public one. One
 * build, one publication, one installation and one project for all tests.
 */
import { type ChildProcessByStdio, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { globSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { publishAll } from "../../scripts/packages/publish.ts";
import { packageFolder, PUBLISHED, readManifest } from "../../scripts/packages/published.ts";
import { type NpmRegistry, startNpmRegistry } from "../peers/npm-registry.ts";
import { buildPackagesWith } from "../support/built-packages.ts";
import { findOldNode } from "./old-node.ts";
import { terminal } from "./terminal.ts";

const ROOT = join(import.meta.dirname, "../..");
/** The build takes it instead of the version of the sources. */
const VERSION = "9.9.9-test.1";
type Child = ChildProcessByStdio<null, Readable, Readable>;

interface Server {
  readonly child: Child;
  /** Of the server itself. `npx` does not forward signals. */
  readonly pid: number;
  readonly url: string;
  readonly root_token_file: string;
}

let root: string;
let project: string;
let releaseOutput: string;
let registry: NpmRegistry;
/** What the two publications report. */
const reports: string[][] = [];
/** Servers, and the processes that started them. */
const running = new Set<Server>();

/** The command of the installed package, as a program in the PATH. */
const bin = () => join(project, "node_modules/.bin/signalbox");

function run(tool: string, args: readonly string[], folder = project) {
  const { status, stdout, stderr } = spawnSync(tool, args, {
    cwd: folder,
    encoding: "utf8",
    env: terminal(process.execPath),
    // It blocks this process, so the runner's limit would not end it.
    timeout: 600_000,
  });
  return { status, stdout, stderr };
}

beforeAll(async () => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "signalbox-published-")));
  const archives = join(root, "archives");
  releaseOutput = await buildPackagesWith(["scripts/release.ts", VERSION, "--dry-run", "--out", archives]);
  // As `npm create signalbox` does it, which has the package without its dependencies.
  mkdirSync(join(root, "create"));
  execFileSync("tar", [
    "-xzf",
    join(archives, `create-signalbox-${VERSION}.tgz`),
    "-C",
    join(root, "create"),
  ]);
  const created = run(
    process.execPath,
    [join(root, "create/package/bin/create-signalbox.js"), "my project", "--yes"],
    root,
  );
  expect(created).toMatchObject({ status: 0, stderr: "" });
  project = join(root, "my project");
  await publish(archives);
  const install = ["install", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts"];
  const npm = spawn("npm", install, { cwd: project, env: publisher(), stdio: ["ignore", "ignore", "pipe"] });
  let errors = "";
  npm.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
  expect([(await once(npm, "close"))[0], errors]).toEqual([0, ""]);
});
afterEach(async () => {
  for (const server of running) await end(server, server.pid);
});
afterAll(async () => {
  await registry.close();
  rmSync(root, { recursive: true, force: true });
});

const NAMES = PUBLISHED.map((folder) => readManifest(packageFolder(folder)).name);

/** The environment of somebody who publishes to the registry, and installs from it. */
const publisher = () => ({ ...terminal(process.execPath), npm_config_userconfig: join(root, "npmrc") });

/** Twice, as a job does that is repeated: the first time it ends after two packages. */
async function publish(archives: string): Promise<void> {
  registry = await startNpmRegistry(NAMES, "token-of-the-registry");
  writeFileSync(
    join(root, "npmrc"),
    `registry=${registry.url}\n${registry.url.slice("http:".length)}:_authToken=token-of-the-registry\n`,
  );
  const packed = NAMES.map((name) => ({
    name,
    file: join(archives, `${name.replace("@", "").replace("/", "-")}-${VERSION}.tgz`),
  }));
  const publication = { version: VERSION, registry: registry.url, hasProvenance: false };
  for (const some of [packed.slice(0, 2), packed]) {
    const lines: string[] = [];
    const report = (line: string) => lines.push(line);
    expect(await publishAll(some, publication, { folder: root, env: publisher(), report })).toBe(true);
    reports.push(lines);
  }
}

/** Stops a server by a signal to the process, and resolves to the exit code of the one that the test has started. */
async function end(server: Server, pid: number): Promise<number | null> {
  running.delete(server);
  const exit = once(server.child, "exit");
  process.kill(pid, "SIGTERM");
  return ((await exit) as [number | null])[0];
}

async function serve(tool: string, args: readonly string[], folder = project): Promise<Server> {
  const child = spawn(tool, args, {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
    env: terminal(process.execPath),
  });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => (errors += chunk));
  const exit = once(child, "exit").then(() => {
    throw new Error(`${tool} ${args.join(" ")} ended: ${errors}`);
  });
  // The server may end after the test has its address.
  exit.catch(() => undefined);
  const [line] = (await Promise.race([once(child.stdout.setEncoding("utf8"), "data"), exit])) as [string];
  const server = { ...(JSON.parse(line) as Server), child };
  running.add(server);
  return server;
}

it("`npx signalbox serve` answers a call to echo and serves the dashboard, in a commonjs project with a TypeScript configuration", async () => {
  const commonjs = join(project, "commonjs");
  mkdirSync(commonjs, { recursive: true });
  writeFileSync(join(commonjs, "package.json"), '{"name":"commonjs","type":"commonjs"}');
  writeFileSync(
    join(commonjs, "signalbox.config.ts"),
    'import { defineConfig } from "signalbox";\nexport default defineConfig({ listener: { maxBodyBytes: 2048 } });\n',
  );
  const { url, root_token_file } = await serve(
    "npx",
    ["signalbox", "serve", "--json", "--port", "0"],
    commonjs,
  );
  const post = (path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(url + path, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  const call = { model: "echo", messages: [{ role: "user", content: "hello" }] };
  const answer = (await (await post("/v1/default/default/echo/chat/completions", call)).json()) as {
    choices: { message: { content: string } }[];
  };
  expect(answer.choices[0]?.message.content).toContain("hello");
  // The limit of the configuration file.
  const token = readFileSync(root_token_file, "utf8").trim();
  const large = await post("/accounts", { name: "x".repeat(3000) }, { authorization: `Bearer ${token}` });
  expect(large.status).toBe(413);
  const page = await (await fetch(`${url}/dashboard/`)).text();
  expect(page).toContain("<title>Signalbox</title>");
  const script = /src="([^"]+\.js)"/.exec(page)?.[1] ?? "";
  expect((await fetch(new URL(script, url))).status).toBe(200);
  const list = run(bin(), ["account", "list"], commonjs);
  expect([list.stderr, list.stdout]).toEqual(["", expect.stringMatching(/^ID +NAME +CREATED\ndefault /)]);

  writeFileSync(
    join(commonjs, "use-client.mjs"),
    `import { SignalboxClient } from "@signalbox/client";
     import { translateRequest } from "@signalbox/translate";
     const client = new SignalboxClient({ url: process.argv[2], token: process.argv[3] });
     console.log((await client.accounts.get("default")).id, typeof translateRequest);`,
  );
  expect(run(process.execPath, ["use-client.mjs", url, token], commonjs)).toEqual({
    status: 0,
    stdout: "default function\n",
    stderr: "",
  });
});

it("the created project type-checks with declarations of installed packages, and its test passes", () => {
  const check = run("npm", ["run", "check", "--", "--skipLibCheck", "false"]);
  expect(check.status, check.stdout).toBe(0);
  const test = run("npm", ["test"]);
  expect(test.status, test.stdout + test.stderr).toBe(0);
  expect(test.stdout).toMatch(/pass 1$/m);
});

it("the created project starts, and its agent receives webhooks", async () => {
  const server = await serve("npm", ["start", "--silent", "--", "--json", "--port", "0"]);
  const send = ["webhooks", "send", "generic", "boiler-7", "--payload", '{"temperature": 95}'];
  expect(run(bin(), send)).toMatchObject({ status: 0 });
  const report = run(bin(), ["agents", "call", "device-agent", "boiler-7", "report"]);
  expect(report.stdout).toContain("boiler-7 is too hot (95 degrees, 1 events)");
  expect(await end(server, server.pid)).toBe(0);
});

it("a project is not created over files that exist, and nothing is written then", () => {
  const folder = join(project, "taken");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "tsconfig.json"), "{}");
  const { status, stderr } = run(bin(), ["init", "taken"]);
  expect([status, stderr]).toEqual([
    2,
    `signalbox: ${folder} already has tsconfig.json; nothing was written. Choose another folder, or add an agent to this project as docs/guides/your-own-project.md describes\n`,
  ]);
  expect(globSync("*", { cwd: folder })).toEqual(["tsconfig.json"]);
});

it("an older Node is told in one line which command works, with exit code 2", () => {
  const old = findOldNode();
  const message = (line: string) =>
    new RegExp(`^signalbox needs Node 24 or newer, this is v\\d+\\.\\d+\\.\\d+\\. Run: ${line}\n$`);
  const command = `npx -y -p node@24 -p signalbox@${VERSION} signalbox`;
  const plain = run(old, [bin(), "serve", "--port", "0"]);
  expect(plain).toMatchObject({ status: 2, stdout: "" });
  expect(plain.stderr).toMatch(message(`${command} serve --port 0`));
  // Words that a shell would read differently are left out.
  const quoted = run(old, [bin(), "serve", "--config", "$(x)"]);
  expect(quoted.stderr).toMatch(message(`${command} serve`));
});

it("an older Node runs the command on the Node 24 that is installed beside the package", async () => {
  const old = findOldNode();
  const own = join(ROOT, "node_modules/.bin/signalbox");
  const manifest = readFileSync(join(ROOT, "packages/signalbox/package.json"), "utf8");
  expect(run(old, [own, "--version"])).toEqual({
    status: 0,
    stdout: `${(JSON.parse(manifest) as { version: string }).version}\n`,
    stderr: "",
  });
  expect(run(old, [own, "serve", "--port", "x"]).status).toBe(2);
  const data = join(root, "data");
  const server = await serve(old, [own, "serve", "--json", "--port", "0", "--data-dir", data]);
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  // The older Node forwards the signal and the exit code.
  expect(await end(server, server.child.pid ?? 0)).toBe(0);
});

it("positions in the published files are those of the sources", () => {
  const built = join(project, "node_modules/signalbox/src");
  const files = globSync("**/*.js", { cwd: built, exclude: ["dashboard-app/**"] });
  expect(files.length).toBeGreaterThan(500);
  const differing = files.filter((file) => {
    const source = readFileSync(join(ROOT, "packages/signalbox/src", file.replace(/\.js$/, ".ts")), "utf8");
    const lines = readFileSync(join(built, file), "utf8").split("\n");
    const code = (text: string) => /^\s*(?:export )?(?:async )?function\*? (\w+)/.exec(text)?.[1];
    return source
      .split("\n")
      .some((line, i) => code(line) !== code(lines[i] ?? "") && lines[i]?.trim() !== "");
  });
  expect(differing).toEqual([]);
});

it("the dry run of a release names what it would do, and leaves the repository as it is", () => {
  const status = spawnSync("git", ["diff", "--name-only"], { cwd: ROOT, encoding: "utf8" });
  expect(status.stdout).not.toContain("package-lock.json");
  const names = [
    "@signalbox/protocol",
    "@signalbox/translate",
    "@signalbox/client",
    "create-signalbox",
    "signalbox",
  ];
  for (const name of names) expect(releaseOutput).toContain(`packed ${name}@${VERSION}: `);
  expect(releaseOutput).toContain(`would run git tag --annotate v${VERSION}`);
  const commands = releaseOutput.split("\n").filter((line) => line.startsWith("would publish: npm publish "));
  expect(commands).toHaveLength(names.length);
  for (const line of commands) expect(line).toMatch(/\.tgz --access public --provenance --tag next$/);
  const sbom = JSON.parse(readFileSync(join(project, "node_modules/signalbox/sbom.cdx.json"), "utf8")) as {
    components: { name: string; version: string }[];
  };
  const parts = sbom.components.map(({ name }) => name);
  expect(parts).toEqual(expect.arrayContaining(["pg", "ws", "zod", "react-dom", "@signalbox/client"]));
  expect(parts).not.toContain("vite");
});

it("the archives are published to a registry in their order, each once, and installed from it by name", async () => {
  const published = NAMES.map((name) => `${name}@${VERSION}`);
  expect(registry.published).toEqual(published);
  expect(reports).toEqual([
    published.slice(0, 2).map((one) => `published ${one}`),
    [
      ...published.slice(0, 2).map((one) => `${one} is published already`),
      ...published.slice(2).map((one) => `published ${one}`),
    ],
  ]);
  // The suffix of the version makes it the next one, so that a name alone would not install it.
  for (const name of NAMES) {
    const packument = (await (await fetch(`${registry.url}${name}`)).json()) as { "dist-tags": object };
    expect(packument["dist-tags"]).toEqual({ next: VERSION });
  }
  const { packages } = JSON.parse(readFileSync(join(project, "package-lock.json"), "utf8")) as {
    packages: Record<string, { version: string; resolved: string }>;
  };
  for (const name of NAMES)
    expect(packages[`node_modules/${name}`]).toMatchObject({
      version: VERSION,
      resolved: expect.stringContaining(registry.url) as string,
    });
  const { stdout } = run(bin(), ["version", "--json"]);
  expect(stdout).toContain(VERSION);
});
