/** The code of the guide moves an object from the originals' own runtime to this server, and back. */
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { PROGRAMS, startWorker } from "./support/worker-server.ts";
import { startWorkerd } from "./support/workerd.ts";

const GUIDE = join(import.meta.dirname, "../../docs/guides/run-cloudflare-agents.md");

/** The program with the code of the guide. */
async function writeProgram(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-moving-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await cp(join(PROGRAMS, "moving"), folder, { recursive: true });
  const code = /```ts\n(\/\/ moving\.ts\n[^]*?)```/.exec(await readFile(GUIDE, "utf8"))?.[1];
  if (code === undefined) throw new Error("the guide has no code of moving.ts");
  await writeFile(join(folder, "src/moving.ts"), code);
  return relative(PROGRAMS, join(folder, "src/server.ts"));
}

async function ask(url: string, path: string, body?: string): Promise<string> {
  const response = await fetch(url + path, body === undefined ? {} : { method: "POST", body });
  expect(response.status, path).toBe(200);
  return response.text();
}

test("tables, indexes, views, triggers, full text, keys and the alarm of an object move in both directions", async () => {
  const program = await writeProgram();
  const theirs = await startWorkerd(program, ["Notes"], ["nodejs_compat"]);
  onTestFinished(() => theirs.remove());
  const ours = await startWorker(program);
  onTestFinished(() => ours.remove());
  await ask(theirs.url, "/a/fill");
  const text = await ask(theirs.url, "/a/export");
  const content = JSON.parse(await ask(theirs.url, "/a/content")) as object;
  expect(content).toMatchObject({ notes: { n: 301, bytes: 450, id: 301 }, log: [{ text: "last" }] });
  await ask(ours.url, "/a/import", text);
  // What is imported a second time replaces what is there.
  await ask(ours.url, "/a/import", text);
  expect(await ask(ours.url, "/a/export")).toBe(text);
  expect(JSON.parse(await ask(ours.url, "/a/content"))).toEqual(content);
  await ask(theirs.url, "/b/import", await ask(ours.url, "/a/export"));
  expect(await ask(theirs.url, "/b/export")).toBe(await ask(ours.url, "/a/export"));
});
