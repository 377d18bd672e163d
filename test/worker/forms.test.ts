/** Programs in other forms than those of the examples: older classes, plain objects, names of the platform, settings of the wrangler file. */
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PROGRAMS, startWorker, type WorkerServer } from "./support/worker-server.ts";

let folder: string;
let server: WorkerServer;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-forms-"));
  await cp(join(PROGRAMS, "forms"), folder, { recursive: true });
  await addPackage("node_modules/bundled-only", {
    "package.json": JSON.stringify({ name: "bundled-only", type: "module", exports: "./dist/index.js" }),
    "dist/index.js": `export { shout } from "./lib/shout";\n`,
    "dist/lib/shout.js": `import { mark } from "../marks";\nexport const shout = (text) => text.toUpperCase() + mark;\n`,
    "dist/marks/index.js": `export { mark } from "other-package/mark";\n`,
  });
  await addPackage("node_modules/other-package", {
    "package.json": JSON.stringify({ name: "other-package" }),
    "mark.js": `exports.mark = "!";\n`,
  });
  server = await startWorker(relative(PROGRAMS, join(folder, "src/server.js")));
});
afterAll(async () => {
  await server.remove();
  await rm(folder, { recursive: true, force: true });
});

async function addPackage(path: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    const file = join(folder, path, name);
    await mkdir(join(file, ".."), { recursive: true });
    await writeFile(file, text);
  }
}

async function ask(path: string): Promise<unknown> {
  return (await fetch(server.url + path)).json();
}

test("names of `define` are replaced, and packages that were made for bundlers load", async () => {
  expect(await ask("/define")).toEqual({ build: "of the wrangler file", shouted: "TEXT!" });
});

test("a class that extends nothing is an object with handlers, without calls of its methods", async () => {
  expect(await ask("/old")).toEqual({
    first: { count: 1, rung: false },
    call: expect.stringContaining("TypeError: The object does not support RPC"),
    rung: true,
  });
});

test("classes whose names are equal in lower case have objects of their own", async () => {
  expect(await ask("/subs")).toEqual({ who: ["Sub", "SUB"], rung: ["Sub", "SUB"] });
});

test("a facet is started with props that an export was called with", async () => {
  expect(await ask("/facets")).toEqual([{ n: 1 }, { n: 2 }]);
});

test("an object with handlers is an entrypoint, and stubs follow its redirects", async () => {
  expect(await ask("/service")).toEqual([
    "https://example.com/here",
    "other /here object function",
    302,
    "other /x object function",
  ]);
});

test("the names that programs import or find as globals are there", async () => {
  expect(await ask("/names")).toEqual({
    instances: [true, true, true, false],
    binding: "other",
    exported: 1,
    after: null,
    span: [false, 1],
    purged: { success: true, errors: [] },
    restore: "symbol",
    self: true,
    flags: {
      enhanced_error_serialization: false,
      delete_all_deletes_alarm: false,
      websocket_standard_binary_type: false,
      nodejs_compat: true,
    },
    digest: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    texts: ["ü!€", 6, "ü!€", "ü!€"],
    rewritten: "<p>new</p>",
    cf: { colo: "X" },
    events: ["one", "named two\nthree 7"],
  });
  expect(await ask("/rejection")).toEqual(["Error: nobody waits"]);
  expect(await ask("/report")).toEqual(["handled here"]);
  // An error that nobody handles ends nothing.
  expect(await ask("/report")).toEqual(["handled here"]);
});

test("a server of node:http answers as a handler", async () => {
  const { host } = new URL(server.url);
  for (const path of ["/node?q=1", "/node-again"]) {
    const answer = await fetch(server.url + path, { method: "POST", body: "sent" });
    expect([answer.status, answer.headers.get("x-host"), await answer.text()]).toEqual([
      201,
      host,
      `${path} sent`,
    ]);
  }
});

test("an old compatibility date keeps the alarm after deleteAll, and binary messages as buffers", async () => {
  expect(await ask("/alarm")).toBe(true);
  expect(await ask("/binary")).toEqual(["ArrayBuffer", "Blob"]);
});

test("a class that was renamed in the wrangler file has the objects of its former name", async () => {
  expect(await ask("/rooms?who=ada")).toEqual(["ada"]);
  const path = join(folder, "src/rooms.js");
  await writeFile(path, (await readFile(path, "utf8")).replace("Room as ChatRoom", "Room"));
  const wrangler = join(folder, "wrangler.jsonc");
  const text = await readFile(wrangler, "utf8");
  const exports = {
    ChatRoom: { type: "durable-object", state: "renamed", renamed_to: "Room" },
    Room: { type: "durable-object", storage: "sqlite" },
  };
  const settings = `"exports": ${JSON.stringify(exports)}, "compatibility_date": "2026-10-01"`;
  await writeFile(wrangler, text.replace(`"compatibility_date": "2026-02-01"`, settings));
  server = await server.killAndRestart();
  expect(await ask("/rooms?who=grace")).toEqual(["ada", "grace"]);
  expect(await ask("/alarm")).toBe(false);
  expect(await ask("/binary")).toEqual(["Blob", "ArrayBuffer"]);
});
