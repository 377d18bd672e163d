import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ConfigError } from "../config/index.ts";
import { MasterKeys } from "./master-keys.ts";
import { openSecretFile } from "./secret-file.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-secret-"));
  file = join(folder, "secret");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const GENERATED = "0123456789abcdef";
const open = () => openSecretFile(file, () => GENERATED);
const masterKeys = () => new MasterKeys({ fromEnvironment: [], file, onFile: () => undefined });

it("a secret is generated once, for its owner only", () => {
  expect(open()).toEqual({ text: GENERATED, isNew: true });
  expect(openSecretFile(file, () => "another one with the same length")).toEqual({
    text: GENERATED,
    isNew: false,
  });
  expect([statSync(file).mode & 0o777, readdirSync(folder)]).toEqual([0o600, ["secret"]]);
});

it.each([
  ["is empty", "", true],
  ["has blanks only", " \n\n", true],
  ["is cut", GENERATED.slice(0, 7), false],
])("a file that %s is an error, and stays as it is: no new secret takes its place", (_, text, isVisible) => {
  writeFileSync(file, text);
  if (isVisible) expect(open).toThrow(ConfigError);
  expect(() => masterKeys().opening()).toThrow(ConfigError);
  expect(() => masterKeys().sealing()).toThrow(ConfigError);
  expect(() => masterKeys().rotate()).toThrow(ConfigError);
  expect(readFileSync(file, "utf8")).toBe(text);
});

it("a secret of an operator is used, with a line feed and without", () => {
  for (const text of ["short", "short\n", `${GENERATED}${GENERATED}`]) {
    writeFileSync(file, text);
    expect(open().text).toBe(text.trim());
  }
});

it("a rotation replaces the keys in the file, the new one first, and then removes the old ones", () => {
  const keys = masterKeys();
  const sealed = keys.sealing().seal("text", "context");
  const { sealing, finish } = keys.rotate();
  expect(readFileSync(file, "utf8").trim().split("\n")).toHaveLength(2);
  expect(sealing.open(sealed, "context")).toEqual({ text: "text", isCurrentKey: false });
  finish();
  expect(readFileSync(file, "utf8").trim().split("\n")).toHaveLength(1);
  expect(masterKeys().opening()?.open(sealed, "context")).toBeNull();
});
