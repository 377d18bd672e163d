/** A program with skills: `agents:skills` is a module that the bundler's plugin of the `agents` package makes of a folder. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { PROGRAMS, startWorker } from "./support/worker-server.ts";

const PACKAGES = join(import.meta.dirname, "../../node_modules");

const PROGRAM = `
  import skills from "agents:skills";
  import moreSkills from "agents:skills/more";
  export default {
    async fetch() {
      const { name, body, resources } = await skills.load("greeting");
      const script = await skills.readResource("greeting", "scripts/greet.ts");
      return Response.json({
        names: (await skills.list()).map((skill) => skill.name),
        more: (await moreSkills.list()).map((skill) => skill.name),
        body: body.trim(),
        resources: resources.map(({ path }) => path),
        script: script.content,
      });
    },
  };`;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-skills-"));
  await add("wrangler.jsonc", "{}");
  await add("src/server.ts", PROGRAM);
  await add("src/skills/greeting/SKILL.md", skill("greeting", "Say hello."));
  await add("src/skills/greeting/scripts/greet.ts", "export const greet = (name: string) => name;\n");
  await add("src/skills/farewell/SKILL.md", skill("farewell", "Say goodbye."));
  await add("src/more/silence/SKILL.md", skill("silence", "Say nothing."));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function add(path: string, text: string): Promise<void> {
  await mkdir(dirname(join(folder, path)), { recursive: true });
  await writeFile(join(folder, path), text);
}

function skill(name: string, text: string): string {
  return `---\nname: ${name}\ndescription: About ${name}.\n---\n${text}\n`;
}

/** Gives the project a version of the package, which has its own packages beside it. */
async function install(version: string): Promise<void> {
  await mkdir(join(folder, "node_modules"));
  await symlink(join(PACKAGES, version), join(folder, "node_modules/agents"));
}

function start() {
  return startWorker(relative(PROGRAMS, join(folder, "src/server.ts")));
}

test("skills beside the importing file are what the plugin makes of them", async () => {
  await install("agents-14");
  const server = await start();
  try {
    expect(await (await fetch(server.url)).json()).toMatchObject({
      names: ["farewell", "greeting"],
      more: ["silence"],
      body: "Say hello.",
      resources: ["scripts/greet.ts"],
      script: expect.stringContaining("greet"),
    });
  } finally {
    await server.remove();
  }
});

test("a project without the package does not start, and the error names the package", async () => {
  await expect(start()).rejects.toThrow(/agents:skills cannot be made: it needs the package/);
});

test("a package whose plugin has no skills any more says so itself", async () => {
  await install("agents");
  await expect(start()).rejects.toThrow(/import has been removed/);
});

test("a folder that cannot be read is named", async () => {
  await install("agents-14");
  await rm(join(folder, "src/more"), { recursive: true });
  await expect(start()).rejects.toThrow(/agents:skills\/more.*ENOENT.*more/s);
});
