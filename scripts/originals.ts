/**
 * `npm run originals -- <folder> …`: how much of what others wrote runs here. Each folder is one of a checkout whose packages are installed, with a wrangler file in it:
 *
 * - with test files (`*.test.ts`): a suite. Its package's sources are copied beside themselves, `vitest` and `cloudflare:test` are replaced by `scripts/originals`, and the files run
 *   one after the other inside of a worker program on Signalbox. `chai`, `@vitest/expect` and `@vitest/spy` must be installed there.
 * - without: a program. It is started, and each of its object classes is asked over HTTP; an answer of any status below 500 counts.
 *
 * Prints a table and every test that failed, with its reason. Nothing is fetched. Files of a suite share a process: run a failing one alone (`FILTER=name`) before you believe it.
 */
import { spawn } from "node:child_process";
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { kebabCase } from "@signalbox/protocol";
import { parse as parseToml } from "smol-toml";
import { parseJsonc } from "../packages/signalbox/src/core/jsonc.ts";

interface Wrangler {
  readonly main?: string;
  readonly durable_objects?: {
    readonly bindings?: readonly { readonly name: string; readonly class_name: string }[];
  };
}

interface Outcome {
  readonly name: string;
  readonly outcome: "passed" | "failed" | "not portable" | "skipped";
  readonly reason?: string;
}

interface Server {
  readonly url: string;
  stop(): Promise<void>;
}

const OUTCOMES = ["passed", "failed", "not portable", "skipped"] as const;
const BIN = join(import.meta.dirname, "../packages/signalbox/bin/signalbox.js");
const INSIDE = join(import.meta.dirname, "originals");
const START_MS = 120_000;
/** A file without a new outcome for so long hangs. */
const SILENCE_MS = 90_000;
const FILTER = process.env["FILTER"] ?? "";

const folders = process.argv.slice(2);
if (folders.length === 0) {
  console.error("usage: npm run originals -- <folder with a wrangler file> …");
  process.exitCode = 2;
}
const rows: string[] = [];
for (const folder of folders.map((path) => resolve(path))) {
  const name = relative(process.cwd(), folder);
  try {
    const files = (await filesBelow(folder)).filter(
      (path) => /\.test\.tsx?$/.test(path) && path.includes(FILTER),
    );
    const outcomes = files.length > 0 ? await runSuite(folder, files) : await runProgram(folder);
    const counts = OUTCOMES.map((kind) => outcomes.filter(({ outcome }) => outcome === kind).length);
    rows.push(`| ${name} | ${files.length === 0 ? "program" : files.length} | ${counts.join(" | ")} |`);
    for (const { name: test, outcome, reason } of outcomes)
      if (outcome === "failed") console.log(`${name}: ${test}: ${reason ?? ""}`);
  } catch (error) {
    rows.push(`| ${name} | does not start | | | | |`);
    console.log(`${name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
console.log(
  ["", `| folder | files | ${OUTCOMES.join(" | ")} |`, "|---|---|---|---|---|---|", ...rows].join("\n"),
);

// ── Suites ──

async function runSuite(folder: string, files: readonly string[]): Promise<Outcome[]> {
  // Beside the package's sources, so that relative imports and packages are found.
  const sources = sourcesOf(folder);
  const copy = `${sources}-on-signalbox`;
  await rm(copy, { recursive: true, force: true });
  await cp(sources, copy, { recursive: true });
  await cp(INSIDE, join(copy, "inside"), { recursive: true });
  const inCopy = (path: string) => join(copy, relative(sources, path));
  for (const path of await filesBelow(copy))
    if (/\.tsx?$/.test(path)) await replaceImports(path, join(copy, "inside"));
  const tests = inCopy(folder);
  const wrangler = await readWrangler(tests);
  await writeFile(
    join(tests, "entry-on-signalbox.ts"),
    entryOf(wrangler, relative(tests, join(copy, "inside"))),
  );
  await writeFile(
    join(tests, "wrangler-on-signalbox.json"),
    JSON.stringify({ ...wrangler, main: "entry-on-signalbox.ts" }),
  );
  const outcomes: Outcome[] = [];
  let server: Server | null = null;
  for (const file of files) {
    server ??= await start(tests, "entry-on-signalbox.ts", "wrangler-on-signalbox.json");
    const found = await runFile(server.url, inCopy(file));
    console.error(
      `${relative(folder, file)}: ${found.outcomes.length}${found.error === null ? "" : `, ${found.error}`}`,
    );
    const prefix = relative(folder, file);
    outcomes.push(...found.outcomes.map((one) => ({ ...one, name: `${prefix} > ${one.name}` })));
    if (found.error === null) continue;
    outcomes.push({ name: prefix, outcome: "failed", reason: found.error });
    await server.stop();
    server = null;
  }
  await server?.stop();
  await rm(copy, { recursive: true, force: true });
  return outcomes;
}

/** The folder `src` that the tests are in. */
function sourcesOf(folder: string): string {
  for (let path = folder; path !== dirname(path); path = dirname(path))
    if (basename(path) === "src") return path;
  return folder;
}

async function replaceImports(path: string, inside: string): Promise<void> {
  const text = await readFile(path, "utf8");
  const to = (name: string) => {
    const target = relative(dirname(path), join(inside, name)).split(sep).join("/");
    return target.startsWith(".") ? target : `./${target}`;
  };
  const changed = text
    .replaceAll(/(from\s*|import\s*\(?\s*)(["'])vitest\2/g, `$1"${to("vitest-inside.mjs")}"`)
    .replaceAll(/(from\s*|import\s*\(?\s*)(["'])cloudflare:test\2/g, `$1"${to("platform-inside.mjs")}"`);
  if (changed !== text) await writeFile(path, changed);
}

/** A program that exports what the tested one does, and runs test files when it is asked to. */
function entryOf({ main = "", durable_objects: objects }: Wrangler, inside: string): string {
  const classes = [...new Set(objects?.bindings?.map(({ class_name: name }) => name))];
  return `import * as tested from ${JSON.stringify(`./${main}`)};
import { open } from "./${inside}/platform-inside.mjs";
import { runFile } from "./${inside}/vitest-inside.mjs";
export * from ${JSON.stringify(`./${main}`)};
${classes.map((name, i) => `const class${i} = open((tested as any).${name});\nexport { class${i} as ${name} };`).join("\n")}
const runs = new Map<string, { outcomes: unknown[]; isDone: boolean; error: string | null }>();
async function run(file: string) {
  const state = { outcomes: [] as unknown[], isDone: false, error: null as string | null };
  runs.set(file, state);
  try {
    await runFile(file, (outcome: unknown) => void state.outcomes.push(outcome));
  } catch (error) {
    state.error = String(error);
  }
  state.isDone = true;
}
const inner = (tested as any).default;
export default {
  ...inner,
  async fetch(request: Request, env: any, ctx: any) {
    const { pathname, searchParams } = new URL(request.url);
    const file = searchParams.get("file") ?? "";
    if (pathname === "/on-signalbox/run") {
      ctx.waitUntil(run(file));
      return new Response(null, { status: 202 });
    }
    if (pathname === "/on-signalbox/state") return Response.json(runs.get(file) ?? null);
    return inner.fetch(request, env, ctx);
  },
};
`;
}

async function runFile(url: string, path: string): Promise<{ outcomes: Outcome[]; error: string | null }> {
  const query = new URLSearchParams({ file: pathToFileURL(path).href });
  let outcomes: Outcome[] = [];
  try {
    await fetch(`${url}/on-signalbox/run?${String(query)}`);
    for (let changedAt = Date.now(); ;) {
      await sleep(200);
      const response = await fetch(`${url}/on-signalbox/state?${String(query)}`, {
        signal: AbortSignal.timeout(30_000),
      });
      const state = (await response.json()) as {
        outcomes: Outcome[];
        isDone: boolean;
        error: string | null;
      } | null;
      if (state === null) continue;
      if (state.outcomes.length !== outcomes.length) changedAt = Date.now();
      outcomes = state.outcomes;
      if (state.isDone) return { outcomes, error: state.error };
      if (Date.now() - changedAt > SILENCE_MS) return { outcomes, error: "the file hangs" };
    }
  } catch (error) {
    return { outcomes, error: `the server: ${String(error)}` };
  }
}

// ── Programs ──

async function runProgram(folder: string): Promise<Outcome[]> {
  const wrangler = await readWrangler(folder);
  const server = await start(folder, wrangler.main ?? "src/index.ts", null);
  try {
    const classes = wrangler.durable_objects?.bindings?.map(({ class_name: name }) => name) ?? [];
    const paths = ["/", ...classes.map((name) => `/agents/${kebabCase(name)}/asked`)];
    return await Promise.all(
      paths.map(async (path): Promise<Outcome> => {
        const { status } = await fetch(server.url + path, {
          redirect: "manual",
          signal: AbortSignal.timeout(60_000),
        });
        return status < 500
          ? { name: path, outcome: "passed" }
          : { name: path, outcome: "failed", reason: `status ${status}` };
      }),
    );
  } finally {
    await server.stop();
  }
}

// ── Servers ──

async function start(cwd: string, entry: string, wrangler: string | null): Promise<Server> {
  const data = await mkdtemp(join(tmpdir(), "signalbox-originals-"));
  const args = ["serve", "--worker", entry, ...(wrangler === null ? [] : ["--wrangler", wrangler])];
  const child = spawn(
    process.execPath,
    [
      BIN,
      ...args,
      "--agents-access",
      "worker",
      "--port",
      "0",
      "--json",
      "--data-dir",
      data,
      "--log-level",
      "error",
    ],
    { cwd, stdio: ["ignore", "pipe", "pipe"] },
  );
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(-2000);
  });
  const ended = new Promise<void>((done) => child.once("close", () => done()));
  const stop = async () => {
    child.kill("SIGKILL");
    await ended;
    await rm(data, { recursive: true, force: true });
  };
  const { promise: listening, resolve: listens, reject } = Promise.withResolvers<string>();
  child.once("error", reject);
  const timer = setTimeout(() => reject(new Error(`not started after ${START_MS / 1000} s`)), START_MS);
  void ended.then(() => reject(new Error(errors.trim().split("\n").at(-1) ?? "ended")));
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (!line.startsWith("{")) return;
    const { url } = JSON.parse(line) as { url?: string };
    if (url !== undefined) listens(url);
  });
  try {
    return { url: await listening, stop };
  } catch (error) {
    await stop();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

// ── Files ──

async function readWrangler(folder: string): Promise<Wrangler> {
  for (const name of ["wrangler.jsonc", "wrangler.json", "wrangler.toml"]) {
    const text = await readFile(join(folder, name), "utf8").catch(() => null);
    if (text !== null) return (name.endsWith(".toml") ? parseToml(text) : parseJsonc(text)) as Wrangler;
  }
  throw new Error(`${folder} has no wrangler file`);
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && !entry.parentPath.includes(`${sep}node_modules`))
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
}
