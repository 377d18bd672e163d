/** `docs/reference/configuration.md`: every key of the configuration file, from its schema, and every setting of the process. */
import { join } from "node:path";
import { z } from "zod";
import { configFile } from "../../packages/signalbox/src/config/config-file.ts";
import { OPTIONS_OF_KEYS, PROCESS_SETTINGS } from "../../packages/signalbox/src/config/process-settings.ts";
import { type CommentedObject, readCommentedObjects } from "./key-comments.ts";

export const CONFIGURATION_PAGE_PATH = join(import.meta.dirname, "../../docs/reference/configuration.md");

const INTRODUCTION = `# Configuration

This page is generated from the schema of the configuration by \`npm run docs\`.

A setting of the process is an option of \`signalbox serve\` or a variable of the environment; an option takes precedence over a variable, and a variable
over the default. An empty variable counts as not set. All other settings are keys of the configuration file: \`signalbox.config.ts\`, \`.js\` or \`.json\` in the
working folder, or the file that \`--config\` names. It is optional. An unknown key or a wrong value ends the start with one line that names it.

\`\`\`ts
import { defineConfig } from "signalbox";

export default defineConfig({
  listener: { publicUrl: "https://ai.example.com" },
  gateway: { logs: { maxAgeDays: 90 } },
});
\`\`\`

\`signalbox config\` prints the settings in force, and where each of them comes from.

`;

export interface DescribedKey {
  /** `agents.tagChanges[].agent`, `providers.<name>.baseUrl`. */
  readonly path: string;
  readonly type: string;
  readonly default: string;
  /** Null if the source has no comment for the key. */
  readonly meaning: string | null;
  readonly isSection: boolean;
}

interface JsonSchema {
  readonly type?: string;
  readonly $ref?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  /** How the page names the type of a value that can be anything. */
  readonly title?: string;
  readonly oneOf?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
}

export function describeKeys(): DescribedKey[] {
  const schema = z.toJSONSchema(configFile, { io: "input", unrepresentable: "any" }) as JsonSchema;
  return [...walk("", schema, readCommentedObjects())];
}

function* walk(
  path: string,
  schema: JsonSchema,
  objects: readonly CommentedObject[],
): Generator<DescribedKey> {
  const { properties = {}, required = [], additionalProperties, items, anyOf = [] } = schema;
  const names = new Set(Object.keys(properties));
  const fitting = objects.filter((object) => [...object.keys()].every((name) => names.has(name)));
  for (const [name, property] of Object.entries(properties)) {
    const known = fitting.filter((object) => object.get(name) != null);
    // An object with few keys is a part of many others: the largest one is meant.
    const largest = Math.max(...known.map(({ size }) => size));
    const comments = new Set(known.filter(({ size }) => size === largest).map((object) => object.get(name)));
    if (comments.size > 1)
      throw new Error(`${path}${name} has several comments: ${[...comments].join(" / ")}`);
    const [meaning = null] = comments;
    const isSection = property.properties !== undefined;
    yield {
      path: path + name,
      type: isSection ? "object" : typeOf(property),
      default: defaultOf(property, required.includes(name)),
      meaning,
      isSection,
    };
    yield* walk(`${path}${name}.`, property, objects);
  }
  const parent = path.slice(0, -1);
  if (typeof additionalProperties === "object")
    yield* walk(`${parent}.<name>.`, additionalProperties, objects);
  if (items !== undefined) yield* walk(`${parent}[].`, items, objects);
  for (const one of anyOf) yield* walk(path, one, objects);
}

function typeOf(schema: JsonSchema): string {
  const { type, anyOf, items, additionalProperties } = schema;
  if (schema.title !== undefined) return schema.title;
  if (schema.oneOf !== undefined) return "object";
  if (schema.enum !== undefined)
    return schema.enum.map((value) => `\`${JSON.stringify(value)}\``).join(" or ");
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (anyOf !== undefined) return [...new Set(anyOf.map(typeOf))].join(" or ");
  if (schema.$ref !== undefined) return "JSON value";
  if (type === "array") return `list of ${typeOf(items ?? {})}`;
  if (type === "object" && typeof additionalProperties === "object")
    return `object of ${typeOf(additionalProperties)}`;
  if (type === "integer" || type === "number") return numberType(schema);
  return type === "string" ? "text" : (type ?? "function");
}

function numberType({ type, minimum, exclusiveMinimum, maximum }: JsonSchema): string {
  const name = type === "integer" ? "integer" : "number";
  const from = minimum ?? exclusiveMinimum;
  const hasEnd = maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER;
  if (from === undefined || from === Number.MIN_SAFE_INTEGER)
    return hasEnd ? `${name} up to ${grouped(maximum)}` : name;
  const start = exclusiveMinimum === undefined ? `from ${grouped(from)}` : `above ${grouped(from)}`;
  return hasEnd ? `${name} ${start} to ${grouped(maximum)}` : `${name} ${start}`;
}

function grouped(value: number): string {
  return value.toLocaleString("en-US");
}

function defaultOf(schema: JsonSchema, isRequired: boolean): string {
  if (schema.properties !== undefined) return isRequired ? "required" : "–";
  if (schema.default === undefined) return isRequired ? "required" : "–";
  return `\`${JSON.stringify(schema.default)}\``;
}

export function configurationPage(): string {
  const keys = describeKeys();
  const sections = keys.filter(({ path }) => !path.includes("."));
  const lines = [
    INTRODUCTION,
    "## Settings of the process\n\n",
    "| option | variable | default | meaning |\n| --- | --- | --- | --- |\n",
  ];
  for (const { option, variable, default: value = "–", meaning } of PROCESS_SETTINGS)
    lines.push(
      `| ${option === undefined ? "–" : `\`--${option}\``} | ${variable === undefined ? "–" : `\`${variable}\``} | ${value} | ${meaning} |\n`,
    );
  lines.push(
    "\nProvider keys (`OPENAI_API_KEY`, …), secrets of webhook sources and the variables of OpenTelemetry (`OTEL_…`) are read from the environment, too: see [providers](providers.md), [webhooks](webhooks.md) and [observability](../guides/observability.md).\n",
  );
  for (const section of sections) {
    const own = keys.filter(
      ({ path }) => path.startsWith(`${section.path}.`) || path.startsWith(`${section.path}[`),
    );
    lines.push(`\n## ${section.path}\n\n${section.meaning ?? ""}\n`);
    if (own.length === 0) continue;
    lines.push("\n| key | type | default | meaning |\n| --- | --- | --- | --- |\n");
    for (const { path, type, default: value, meaning } of own) {
      const option = OPTIONS_OF_KEYS[path];
      const text = `${meaning ?? ""}${option === undefined ? "" : ` Option \`--${option}\`.`}`;
      lines.push(`| \`${path}\` | ${cell(type)} | ${cell(value)} | ${cell(text)} |\n`);
    }
  }
  return lines.join("");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
