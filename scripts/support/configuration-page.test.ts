import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { SERVE_OPTIONS } from "../../packages/signalbox/src/cli/options.ts";
import { OPTIONS_OF_KEYS, PROCESS_SETTINGS } from "../../packages/signalbox/src/config/process-settings.ts";
import { configurationPage, CONFIGURATION_PAGE_PATH, describeKeys } from "./configuration-page.ts";
import { scanObjects } from "./key-comments.ts";

const CONFIG = join(import.meta.dirname, "../../packages/signalbox/src/config");

describe("docs/reference/configuration.md", () => {
  it("is up to date with the schema (otherwise: npm run docs)", () => {
    expect(readFileSync(CONFIGURATION_PAGE_PATH, "utf8")).toBe(configurationPage());
  });

  it("describes every key: each has a comment in the schema", () => {
    const keys = describeKeys();
    expect(keys.length).toBeGreaterThan(100);
    expect(keys.filter(({ meaning }) => meaning === null).map(({ path }) => path)).toEqual([]);
  });

  it("lists every option of serve and every variable that the configuration reads", () => {
    const options = [
      ...PROCESS_SETTINGS.flatMap(({ option = [] }) => option),
      ...Object.values(OPTIONS_OF_KEYS),
    ];
    // `no-reexec` is for tests and debuggers.
    const known = SERVE_OPTIONS.map(({ name }) => name).filter((name) => name !== "no-reexec");
    expect(options.toSorted()).toEqual(known.toSorted());
    const source = readdirSync(CONFIG)
      .filter((name) => !name.endsWith(".test.ts") && name !== "process-settings.ts")
      .map((name) => readFileSync(join(CONFIG, name), "utf8"))
      .join("\n");
    const read = new Set([...source.matchAll(/environment\["([A-Z_]+)"\]/g)].map(([, name]) => name));
    const variables = new Set(PROCESS_SETTINGS.map(({ variable }) => variable));
    expect([...read].filter((name) => !variables.has(name))).toEqual([]);
  });

  it("reads comments of nested objects, and is not misled by texts and regular expressions", () => {
    const source = `const a = z.strictObject({
      /** First: "{". */
      one: z.string().regex(/^[{"'/]+$/, "a { text: x"),
      two: z.strictObject({
        /**
         * Of two
         * lines.
         */
        three,
      }),
    });`;
    expect(scanObjects(source).map((object) => Object.fromEntries(object))).toEqual([
      { three: "Of two lines." },
      { one: 'First: "{".', two: null },
    ]);
  });
});
