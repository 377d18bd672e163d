/**
 * Configuration files of every ending, in projects of every module type. One process of Node loads them all, because the test runner has a module
 * loader of its own.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

type Files = Readonly<Record<string, string>>;
/** The configuration, or the message of the error. */
type Outcome = { readonly maxConnections?: number; readonly modules?: string[]; readonly error?: string };

let root: string;
const outcomes = new Map<string, Outcome>();

/** Loads the configuration of every folder; a folder that is named twice is changed in between. */
const PROGRAM = `
  import { writeFileSync } from "node:fs";
  const { readConfigFile } = await import(process.argv[1]);
  const outcomes = {};
  for (const folder of JSON.parse(process.argv[2])) {
    try {
      const { file } = await readConfigFile(undefined, folder);
      outcomes[folder] = { maxConnections: file.listener.maxConnections, modules: file.agents.modules };
    } catch (error) {
      outcomes[folder] = { error: error.message.replace(folder + "/", "") };
    }
    if (folder.endsWith("edited"))
      writeFileSync(folder + "/signalbox.config.ts", "export default { listener: { maxConnections: 8 } };");
  }
  process.stdout.write(JSON.stringify(outcomes));
`;

const ESM =
  'import { defineConfig } from "signalbox";\nexport default defineConfig({ listener: { maxConnections: 7 } });\n';
const CJS =
  'const { defineConfig } = require("signalbox");\nmodule.exports = defineConfig({ listener: { maxConnections: 7 } });\n';
const TYPED =
  "enum N { Seven = 7 }\nexport default { listener: { maxConnections: await N.Seven } } satisfies object;\n";

const FORMS = [
  ["ts", "import", ESM],
  ["ts", "require", CJS],
  ["ts", "an enum and await", TYPED],
  ["js", "import", ESM],
  ["js", "require", CJS],
  ["mts", "import", ESM],
  ["mjs", "import", ESM],
  ["cts", "require", CJS],
  ["cjs", "require", CJS],
] as const;
const TYPES = ["commonjs", "module", "none"] as const;

const NEIGHBOURS: Files = {
  "node_modules/three/package.json": '{"name":"three","main":"main.js"}',
  "node_modules/three/main.js": "exports.three = 3;",
  "lib/one.ts": "export enum Number { One = 1 }",
  "lib/two.cjs": "exports.two = require('./two.json').two;",
  "lib/two.json": '{"two":2}',
  "signalbox.config.ts": `#!/usr/bin/env node
    import { Number } from "./lib/one.js";
    import { two } from "./lib/two.cjs";
    import { three } from "three";
    const { three: again } = require("three");
    export default { listener: { maxConnections: Number.One + two + three + again } };`,
};

const LOCATIONS: Files = {
  "lib/here.ts":
    "export const here = [import.meta.dirname, import.meta.filename, new URL('.', import.meta.url).pathname];",
  "lib/there.cts": "exports.there = [__dirname, __filename];",
  "signalbox.config.ts": `import { here } from "./lib/here.ts";
    import { there } from "./lib/there.cts";
    export default { agents: { modules: [...here, ...there, import.meta.dirname] } };`,
};

const NO_DEFAULT = "no default export; to use module.exports instead, name the file .cjs or .cts";
const INVALID: readonly (readonly [string, string | RegExp])[] = [
  ["export default {\n  listener: { max: };\n", 'signalbox.config.ts:2:20: Unexpected "}"'],
  ['import "./missing.ts";\nexport default {};', 'signalbox.config.ts:1:8: Could not resolve "./missing.ts"'],
  ['import "./lib/broken.ts";\nexport default {};', 'lib/broken.ts:3:7: Expected identifier but found "="'],
  ["const a: number = 1;\n\nthrow new Error('no\\nsuch setting');", "signalbox.config.ts:3:7: no"],
  ["import 'missing';\nexport default {};", /^Cannot find package 'missing' imported from .*\.config\.ts$/],
  ["export const a = 1;", NO_DEFAULT],
  ["throw 'a string';", "a string"],
];

function projects(): [name: string, files: Files][] {
  const forms = TYPES.flatMap((type) =>
    FORMS.map(([ending, how, text]): [string, Files] => [
      `${type}/${ending}/${how}`,
      { "package.json": manifest(type), [`signalbox.config.${ending}`]: text },
    ]),
  );
  const neighbours = TYPES.map((type): [string, Files] => [
    `${type}/neighbours`,
    { "package.json": manifest(type), ...NEIGHBOURS },
  ]);
  const invalid = INVALID.map(([text], i): [string, Files] => [
    `invalid/${i}`,
    { "package.json": manifest("commonjs"), "signalbox.config.ts": text, "lib/broken.ts": "\n\nconst = 1;" },
  ]);
  return [
    ...forms,
    ...neighbours,
    ...invalid,
    ["locations", LOCATIONS],
    ["edited", { "signalbox.config.ts": TYPED }],
  ];
}

function manifest(type: (typeof TYPES)[number]): string {
  return type === "none" ? "{}" : JSON.stringify({ type });
}

beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "signalbox-config-module-")));
  const folders = projects().map(([name, files]) => {
    for (const [path, text] of Object.entries(files)) {
      const file = join(root, name, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    }
    return join(root, name);
  });
  const reader = new URL("./read-config-file.ts", import.meta.url).href;
  const list = JSON.stringify([...folders, join(root, "edited")]);
  const output = execFileSync(process.execPath, ["--input-type=module", "-e", PROGRAM, reader, list], {
    encoding: "utf8",
  });
  for (const [folder, outcome] of Object.entries(JSON.parse(output) as Record<string, Outcome>))
    outcomes.set(folder.slice(root.length + 1), outcome);
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe.each(TYPES)("in a project of type %s", (type) => {
  it.each(FORMS)("signalbox.config.%s with %s", (ending, how) => {
    // The names say that these are ES modules, and Node does not give them a `module` either.
    const isContradiction = type === "module" && how === "require" && ending.length === 2;
    expect(outcomes.get(`${type}/${ending}/${how}`)).toMatchObject(
      isContradiction
        ? { error: `signalbox.config.${ending}: cannot be loaded: ${NO_DEFAULT}` }
        : { maxConnections: 7 },
    );
  });

  it("the file imports TypeScript, JavaScript and JSON by path, with any ending, and packages of its folder", () => {
    expect(outcomes.get(`${type}/neighbours`)).toMatchObject({ maxConnections: 9 });
  });
});

it("import.meta and __dirname name the file in which they are written", () => {
  const lib = join(root, "locations/lib");
  expect(outcomes.get("locations")?.modules).toEqual([
    lib,
    join(lib, "here.ts"),
    `${lib}/`,
    lib,
    join(lib, "there.cts"),
    dirname(lib),
  ]);
});

it("a file that has changed is loaded again", () => {
  expect(outcomes.get("edited")).toMatchObject({ maxConnections: 8 });
});

it.each(INVALID.map(([text, message], i) => [i, text, message] as const))(
  "file %i that cannot be loaded is reported in one line: %j",
  (i, _, message) => {
    const error = outcomes.get(`invalid/${i}`)?.error ?? "";
    const start = "signalbox.config.ts: cannot be loaded: ";
    expect(error.slice(0, start.length)).toBe(start);
    const line = error.slice(start.length);
    if (message instanceof RegExp) expect(line).toMatch(message);
    else expect(line).toBe(message);
  },
);
