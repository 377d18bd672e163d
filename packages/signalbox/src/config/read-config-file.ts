/** Finds, loads and validates the configuration file. An error is reported in one line. */
import { existsSync, readFileSync } from "node:fs";
import { extname, join, resolve } from "node:path";
import type { core } from "zod";
import { nearestName } from "../core/nearest-name.ts";
import { ConfigError } from "../core/config-error.ts";
import { configFile, type ConfigFile } from "./config-file.ts";
import { loadConfigModule } from "./load-config-module.ts";

/** The first one that exists is read. */
const DEFAULT_NAMES = ["ts", "mts", "cts", "js", "mjs", "cjs", "json"].map(
  (ending) => `signalbox.config.${ending}`,
);

export interface LoadedConfigFile {
  readonly file: ConfigFile;
  /** Null if there is no file and the defaults apply. */
  readonly path: string | null;
  /** As the file has it, without defaults. */
  readonly content: unknown;
}

export async function readConfigFile(
  given: string | undefined,
  workingFolder: string,
): Promise<LoadedConfigFile> {
  const path = given === undefined ? findDefault(workingFolder) : resolve(workingFolder, given);
  if (path === null) return { file: configFile.parse({}), path: null, content: {} };
  if (!existsSync(path)) throw new ConfigError(`--config: expected a file, found nothing at ${path}`);
  const content = await load(path);
  return { file: checkConfigFile(content, path, readFileSync(path, "utf8")), path, content };
}

/** `text`: what the content was read from, for the line of an error. */
export function checkConfigFile(content: unknown, path: string, text = ""): ConfigFile {
  const parsed = configFile.safeParse(content);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  if (issue === undefined) throw new ConfigError(`${path}: invalid`);
  throw new ConfigError(`${path}${lineOf(issue, text)}: ${describe(issue, content)}`);
}

/** `:12`, the line of the key. Empty if the file has the key several times, or none: a wrong line is worse than no line. */
function lineOf(issue: core.$ZodIssue, text: string): string {
  const inner = issue.code === "invalid_union" ? innerIssue(issue) : undefined;
  if (inner !== undefined) return lineOf({ ...inner, path: [...issue.path, ...inner.path] }, text);
  const key =
    issue.code === "unrecognized_keys"
      ? issue.keys[0]
      : issue.path.findLast((one) => typeof one === "string");
  if (typeof key !== "string") return "";
  const lines = text.split("\n").flatMap((line, index) => (hasKey(line, key) ? [index + 1] : []));
  return lines.length === 1 ? `:${lines[0]}` : "";
}

function hasKey(line: string, key: string): boolean {
  return new RegExp(`(?:^|[\\s{,"'\`])${key.replaceAll(/\W/g, "\\$&")}["'\`]?\\s*:`).test(line);
}

function findDefault(folder: string): string | null {
  return DEFAULT_NAMES.map((name) => join(folder, name)).find((path) => existsSync(path)) ?? null;
}

async function load(path: string): Promise<unknown> {
  try {
    if (extname(path) === ".json") return JSON.parse(readFileSync(path, "utf8"));
    return await loadConfigModule(path);
  } catch (cause) {
    throw new ConfigError(
      `${path}: cannot be loaded: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
}

function describe(issue: core.$ZodIssue, content: unknown): string {
  const where = issue.path.join(".");
  if (issue.code === "unrecognized_keys") {
    const key = issue.keys[0] ?? "";
    const nearest = nearestName(key, knownKeys(issue.path));
    const full = where === "" ? key : `${where}.${key}`;
    return `unknown key "${full}"${nearest === undefined ? "" : `, did you mean "${nearest}"?`}`;
  }
  const inner = issue.code === "invalid_union" ? innerIssue(issue) : undefined;
  if (inner !== undefined) return describe({ ...inner, path: [...issue.path, ...inner.path] }, content);
  const found = issue.path.reduce<unknown>(
    (value, key) => (value as Record<PropertyKey, unknown> | undefined)?.[key],
    content,
  );
  const problem = issue.code === "invalid_union" ? `expected ${expectations(issue)}` : issue.message;
  return `${where || "the file"}: ${problem}, found ${JSON.stringify(found) ?? "nothing"}`;
}

type UnionIssue = core.$ZodIssueInvalidUnion;

/** The issue inside a value that has the type of one alternative but an invalid member. */
function innerIssue({ errors }: UnionIssue): core.$ZodIssue | undefined {
  return errors
    .map(([first]) => first)
    .find((first) => first !== undefined && (first.path.length > 0 || first.code === "unrecognized_keys"));
}

/** The expected values and types of all alternatives: `500, 404 or 200`. */
function expectations({ errors }: UnionIssue): string {
  const all = new Set(errors.flatMap(([first]) => (first === undefined ? [] : expected(first))));
  const list = [...all];
  const last = list.pop() ?? "another value";
  return list.length === 0 ? last : `${list.join(", ")} or ${last}`;
}

function expected(issue: core.$ZodIssue): string[] {
  if (issue.code === "invalid_value") return issue.values.map(String);
  if (issue.code === "invalid_type")
    return [/^[aeiou]/.test(issue.expected) ? `an ${issue.expected}` : `a ${issue.expected}`];
  if (issue.code === "invalid_union")
    return issue.errors.flatMap(([first]) => (first === undefined ? [] : expected(first)));
  return [issue.message.replace(/^expected /, "")];
}

/** The keys of the schema at a path, inside defaults and unions. */
function knownKeys(path: readonly PropertyKey[]): string[] {
  let schema: unknown = configFile;
  for (const key of path) schema = child(unwrap(schema), key);
  const shape = (unwrap(schema) as { shape?: object } | undefined)?.shape;
  return Object.keys(shape ?? {});
}

interface SchemaNode {
  readonly shape?: Record<PropertyKey, unknown>;
  readonly valueType?: unknown;
  readonly element?: unknown;
  readonly def?: { readonly innerType?: unknown };
}

function unwrap(schema: unknown): SchemaNode | undefined {
  let node = schema as SchemaNode | undefined;
  while (node?.def?.innerType !== undefined) node = node.def.innerType as SchemaNode;
  return node;
}

function child(node: SchemaNode | undefined, key: PropertyKey): unknown {
  return node?.shape?.[key] ?? node?.valueType ?? node?.element;
}
