import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parseOptions } from "./arguments.ts";
import { readEnvironment, toFlags } from "./environment.ts";
import { serve } from "./serve.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-environment-"));
  writeFileSync(join(folder, "my.env"), 'PORT=1\nTEXT="two words"\n');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const context = (args: readonly string[], environment: Record<string, string>) => ({
  ...parseOptions(serve, args),
  environment,
  workingFolder: folder,
});

it("reads --env-file; variables of the process take precedence", () => {
  expect(readEnvironment(context(["--env-file", "my.env"], { PORT: "2" }))).toEqual({
    PORT: "2",
    TEXT: "two words",
  });
  expect(readEnvironment(context([], { PORT: "2" }))).toEqual({ PORT: "2" });
  expect(() => readEnvironment(context(["--env-file", "none"], {}))).toThrow("--env-file: cannot read none");
});

it("maps options to flags of the configuration", () => {
  const args = [
    "--port",
    "0",
    "--admin-port",
    "1",
    "--metrics-public",
    "--agents",
    "a.ts",
    "--agents",
    "b.ts",
  ];
  expect(toFlags(context(args, {}))).toMatchObject({
    port: "0",
    adminPort: "1",
    metricsPublic: true,
    agents: ["a.ts", "b.ts"],
    host: undefined,
  });
});
