/**
 * Runs the tests of a package inside of a worker program: its sources are copied beside themselves, `vitest` and `cloudflare:test` are replaced by those of `inside/`, and the files run one after
 * the other. `chai`, `@vitest/expect` and `@vitest/spy` must be installed there.
 */
import { cp, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { type Servers, startServers } from "./servers.ts";
import { filesBelow, findWrangler, readWrangler, type Wrangler } from "./wrangler-files.ts";

export interface Outcome {
  readonly name: string;
  readonly outcome: "passed" | "failed" | "not portable" | "skipped";
  readonly reason?: string;
}

const INSIDE = join(import.meta.dirname, "inside");
/** A file without a new outcome for so long hangs. */
const SILENCE_MS = 90_000;

export async function runSuite(folder: string, files: readonly string[]): Promise<Outcome[]> {
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
  const file = await findWrangler(tests);
  if (file === null) throw new Error(`${folder} has no wrangler file`);
  const wrangler = await readWrangler(file);
  await writeFile(
    join(tests, "entry-on-signalbox.ts"),
    entryOf(wrangler, relative(tests, join(copy, "inside"))),
  );
  await writeFile(
    join(tests, "wrangler-on-signalbox.json"),
    JSON.stringify({ ...wrangler, main: "entry-on-signalbox.ts" }),
  );
  const outcomes: Outcome[] = [];
  let servers: Servers | null = null;
  for (const file of files) {
    servers ??= await startServers(
      tests,
      join(tests, "entry-on-signalbox.ts"),
      join(tests, "wrangler-on-signalbox.json"),
    );
    const found = await runFile(servers.urls[0] ?? "", inCopy(file));
    console.error(
      `${relative(folder, file)}: ${found.outcomes.length}${found.error === null ? "" : `, ${found.error}`}`,
    );
    const prefix = relative(folder, file);
    outcomes.push(...found.outcomes.map((one) => ({ ...one, name: `${prefix} > ${one.name}` })));
    if (found.error === null) continue;
    outcomes.push({ name: prefix, outcome: "failed", reason: found.error });
    await servers.stop();
    servers = null;
  }
  await servers?.stop();
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
