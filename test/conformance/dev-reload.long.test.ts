/** `signalbox dev` with real saves, all in one process: what editors and version control do, errors, a folder that goes and comes back, the end. */
import { once } from "node:events";
import { mkdir, mkdtemp, realpath, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, it } from "vitest";
import { spawnCli } from "../support/server-process.ts";

const TOKEN = "the-root-token-of-the-test";

let root: string;
let folder: string;
let child: ReturnType<typeof spawnCli>;
let errors = "";
const starts: { url: string; pid: number }[] = [];

const agent = (version: string) => `import { Agent, callable } from "signalbox";
import { word } from "../shared/word.ts";

export class Echo extends Agent {
  @callable()
  version(): string {
    return "${version} " + word + " " + process.pid;
  }

  @callable()
  hang(): Promise<void> {
    console.error("hanging");
    return new Promise<void>(() => undefined);
  }
}
`;

/** Saves under another name and renames, as editors and `sed -i` do. */
async function save(path: string, text: string): Promise<void> {
  await writeFile(`${path}~`, text);
  await rename(`${path}~`, path);
}

/** What the agent answers now, without its process; the text of the failure while the service restarts. */
async function answer(): Promise<string> {
  return (await ask()).text;
}

async function ask(): Promise<{ readonly text: string; readonly pid: number }> {
  try {
    const response = await fetch(`${starts.at(-1)?.url}/agents/echo/one/rpc/version`, {
      method: "POST",
      headers: { authorization: `Bearer ${TOKEN}` },
      body: "[]",
    });
    const { result } = (await response.json()) as { result: string };
    const [version, word, pid] = result.split(" ");
    return { text: `${version} ${word}`, pid: Number(pid) };
  } catch (error) {
    return { text: String(error), pid: 0 };
  }
}

/** Also waits until the process that answers is the last one that was announced: it serves a moment before. */
async function answers(text: string): Promise<void> {
  await expect
    .poll(async () => {
      const found = await ask();
      return [found.text, found.pid === starts.at(-1)?.pid];
    })
    .toEqual([text, true]);
}

beforeAll(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "signalbox-reload-")));
  folder = join(root, "project");
  await mkdir(folder);
  await mkdir(join(root, "shared"));
  await writeFile(join(root, "shared", "word.ts"), 'export const word: string = "first";\n');
  await writeFile(join(folder, "agents.ts"), agent("1"));
  child = spawnCli(
    ["dev", "--json", "--port", "0", "--agents", "agents.ts", "--data-dir", "../data", "--log-level", "warn"],
    { cwd: folder, env: { SIGNALBOX_ROOT_TOKEN: TOKEN } },
  );
  createInterface({ input: child.stdout }).on("line", (line) => {
    starts.push(JSON.parse(line) as { url: string; pid: number });
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
});

afterAll(async () => {
  if (child.exitCode === null) {
    const exit = once(child, "exit");
    child.kill("SIGTERM");
    await exit;
  }
  await rm(root, { recursive: true, force: true });
});

it("replaced files are served, one after the other, at the same address", async () => {
  await answers("1 first");
  await save(join(folder, "agents.ts"), agent("2"));
  await answers("2 first");
  await save(join(root, "shared", "word.ts"), 'export const word: string = "second";\n');
  await answers("2 second");
  expect(new Set(starts.map(({ url }) => url)).size).toBe(1);
});

it("a syntax error is shown with its line while the version before goes on; many saves are few restarts", async () => {
  await save(join(folder, "agents.ts"), agent("3"));
  await answers("3 second");
  const { pid } = starts.at(-1) ?? { pid: 0 };
  const count = starts.length;
  await save(join(folder, "agents.ts"), agent("4").replace("version(): string {", "version(: string {"));
  await expect.poll(() => errors).toContain("the version before the error still runs");
  expect(errors).toContain("agents.ts:6:10");
  expect(errors).toMatch(/6 │ +version\(: string \{/);
  expect(await answer()).toBe("3 second");
  for (let n = 0; n < 50; n += 1) {
    await save(join(folder, `part-${n}.ts`), `export const n = ${n};\n`);
    await save(join(folder, "agents.ts"), agent("5"));
  }
  await answers("5 second");
  // One, unless the machine pauses for longer than a save waits for the next one.
  expect(starts.length - count).toBeLessThan(10);
  expect(starts.at(-1)?.pid).not.toBe(pid);
});

it("a version that cannot be loaded leaves the one before it in place, says where the error is, and the next save is served", async () => {
  const config = join(folder, "signalbox.config.json");
  for (const [path, text, reason] of [
    [
      config,
      '{\n  "listner": {}\n}\n',
      'signalbox.config.json:2: unknown key "listner", did you mean "listener"?',
    ],
    [config, '{\n  "listener": {\n', "signalbox.config.json: cannot be loaded: "],
    [
      join(folder, "agents.ts"),
      `\nimport "no-such-package";\n${agent("6")}`,
      "cannot be loaded: agents.ts:2: Cannot find package 'no-such-package'",
    ],
    [
      join(folder, "agents.ts"),
      `\nimport "./no-such-file.ts";\n${agent("6")}`,
      "cannot be loaded: agents.ts:2: Cannot find module",
    ],
    [
      join(folder, "agents.ts"),
      `${agent("6")}\nconst env: { x?: { y: string } } = {};\nenv.x!.y;\n`,
      "cannot be loaded: agents.ts:18:8: Cannot read properties of undefined",
    ],
  ] as const) {
    const from = errors.length;
    await save(path, text);
    await expect.poll(() => errors.slice(from)).toContain("the version before the error still runs");
    // The failure is a JSON document.
    expect(errors.slice(from).replaceAll('\\"', '"')).toContain(reason);
    // No other process can answer so: the files of that version are gone, or their configuration is refused.
    expect(await answer()).toBe("5 second");
    await rm(config, { force: true });
  }
  await save(join(folder, "agents.ts"), agent("7"));
  await answers("7 second");
});

it("without a version before it, one that cannot start ends, and the next save is served", async () => {
  const from = errors.length;
  process.kill(starts.at(-1)?.pid ?? 0, "SIGKILL");
  await expect
    .poll(() => errors.slice(from))
    .toContain("the service ended (code null); waiting for a change");
  await save(join(folder, "agents.ts"), `import "no-such-package";\n${agent("8")}`);
  await expect.poll(() => errors.slice(from)).toContain("Cannot find package");
  await expect.poll(() => errors.slice(from)).toMatch(/^waiting for a change$/m);
  await save(join(folder, "agents.ts"), agent("8"));
  await answers("8 second");
});

it("the folder is deleted and comes back", async () => {
  await rm(folder, { recursive: true });
  await mkdir(folder);
  await save(join(folder, "agents.ts"), agent("6"));
  await answers("6 second");
});

it("SIGINT ends it at once, whatever the agents do", async () => {
  const { url } = starts.at(-1) ?? { url: "" };
  const hanging = fetch(`${url}/agents/echo/one/rpc/hang`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}` },
    body: "[]",
  }).catch(() => "cut");
  await expect.poll(() => errors).toContain("hanging");
  const exit = once(child, "exit");
  child.kill("SIGINT");
  expect((await exit)[0]).toBe(0);
  expect(await hanging).toBe("cut");
  await expect(fetch(url)).rejects.toThrow();
});
