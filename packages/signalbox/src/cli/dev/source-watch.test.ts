/** Real saves of every kind: in place, by a rename, of new files and folders, of single files elsewhere, and of a folder that comes back. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { appendFile, mkdir, mkdtemp, realpath, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join, relative } from "node:path";
import { SourceWatch } from "./source-watch.ts";

let root: string;
let folder: string;
let watch: SourceWatch;
let changes: string[];

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "signalbox-watch-")));
  folder = join(root, "project");
  await mkdir(join(folder, "lib", "deep"), { recursive: true });
  await mkdir(join(folder, "node_modules", "pkg"), { recursive: true });
  await mkdir(join(root, "shared"));
  await writeFile(join(folder, "agents.ts"), "1");
  await writeFile(join(folder, "lib", "deep", "helper.ts"), "1");
  await writeFile(join(root, "shared", "prompts.ts"), "1");
  changes = [];
  watch = new SourceWatch({
    folder,
    isSource: (path) => path.endsWith(".ts"),
    isIgnored: (path) => basename(path) === "node_modules",
    onChange: (path) => changes.push(relative(folder, path)),
    onError: (path, error) => expect.fail(`${path}: ${error.message}`),
  });
});

afterEach(async () => {
  watch.close();
  await rm(root, { recursive: true, force: true });
});

/** A file that is saved as editors do: under another name, then renamed. */
async function replace(path: string, text: string): Promise<void> {
  await writeFile(`${path}.tmp`, text);
  await rename(`${path}.tmp`, path);
}

/** Waits for a change of the file, and forgets it with all others. */
async function seen(name: string): Promise<void> {
  await expect.poll(() => changes, { interval: 2 }).toContain(name);
  // Events of one save may come in several steps: all of them precede that of a later one.
  await writeFile(join(folder, "mark.ts"), String(Math.random()));
  await expect.poll(() => changes, { interval: 2 }).toContain("mark.ts");
  changes.length = 0;
}

it("saves in place and by a rename, again and again", async () => {
  for (const text of ["2", "3", "4"]) {
    await replace(join(folder, "agents.ts"), text);
    await seen("agents.ts");
    await appendFile(join(folder, "agents.ts"), text);
    await seen("agents.ts");
    await replace(join(folder, "lib", "deep", "helper.ts"), text);
    await seen(join("lib", "deep", "helper.ts"));
  }
});

it("new, removed and moved files and folders", async () => {
  await writeFile(join(folder, "lib", "new.ts"), "1");
  await seen(join("lib", "new.ts"));
  await rm(join(folder, "lib", "new.ts"));
  await seen(join("lib", "new.ts"));
  await mkdir(join(folder, "more", "levels"), { recursive: true });
  await writeFile(join(folder, "more", "levels", "a.ts"), "1");
  await seen(join("more", "levels", "a.ts"));
  await rename(join(folder, "more"), join(folder, "moved"));
  await seen(join("moved", "levels", "a.ts"));
  await replace(join(folder, "moved", "levels", "a.ts"), "2");
  await seen(join("moved", "levels", "a.ts"));
});

it("a folder that is replaced by another one, as a branch switch does", async () => {
  await rm(join(folder, "lib"), { recursive: true });
  await mkdir(join(folder, "lib", "deep"), { recursive: true });
  await writeFile(join(folder, "lib", "deep", "helper.ts"), "2");
  await seen(join("lib", "deep", "helper.ts"));
  await replace(join(folder, "lib", "deep", "helper.ts"), "3");
  await seen(join("lib", "deep", "helper.ts"));
});

it("a single file elsewhere, also after its folder was gone, and nothing else there", async () => {
  const file = join(root, "shared", "prompts.ts");
  const name = join("..", "shared", "prompts.ts");
  watch.add(file);
  await replace(file, "2");
  await seen(name);
  await writeFile(join(root, "shared", "other.ts"), "1");
  await rm(join(root, "shared"), { recursive: true });
  await mkdir(join(root, "shared"));
  await writeFile(file, "3");
  await expect.poll(() => changes, { interval: 2 }).toContain(name);
  expect(changes).not.toContain(join("..", "shared", "other.ts"));
});

it("the watched folder itself is deleted and comes back", async () => {
  for (let round = 0; round < 3; round += 1) {
    await rm(folder, { recursive: true });
    await mkdir(join(folder, "lib"), { recursive: true });
    await writeFile(join(folder, "agents.ts"), `round ${round}`);
    await expect.poll(() => changes, { interval: 2 }).toContain("agents.ts");
    await replace(join(folder, "lib", "later.ts"), "1");
    await seen(join("lib", "later.ts"));
  }
  await rename(folder, `${folder}-away`);
  await mkdir(folder);
  await writeFile(join(folder, "agents.ts"), "another");
  await seen("agents.ts");
});

it("ignored folders and other files cause nothing", async () => {
  await writeFile(join(folder, "node_modules", "pkg", "index.ts"), "1");
  await writeFile(join(folder, "notes.log"), "1");
  await mkdir(join(folder, "lib", "node_modules"));
  await writeFile(join(folder, "lib", "node_modules", "x.ts"), "1");
  await writeFile(join(folder, "mark.ts"), "1");
  await expect.poll(() => changes, { interval: 2 }).toContain("mark.ts");
  expect(new Set(changes)).toEqual(new Set(["mark.ts"]));
});
