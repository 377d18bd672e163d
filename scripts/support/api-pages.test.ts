/** The examples of the management interface are what a running service takes and answers, and the pages show them. */
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { beforeAll, expect, it } from "vitest";
import {
  type OperationExample,
  readOperationExamples,
} from "../../packages/signalbox/src/http/operation-examples.ts";
import { readOpenApi, recordExamples } from "../api-examples/record.ts";
import { API_PAGES_FOLDER, apiPages, type OpenApi } from "./api-pages.ts";

interface Described {
  readonly "x-codeSamples"?: readonly { readonly lang: string; readonly source: string }[];
  readonly parameters: readonly Exampled[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Exampled>> };
  readonly responses: Readonly<Record<string, { readonly content: Readonly<Record<string, Exampled>> }>>;
}

interface Exampled {
  readonly name?: string;
  readonly in?: string;
  readonly schema: object;
  readonly example?: unknown;
}

let openApi: OpenApi;
let operations: ReadonlyMap<string, Described>;
beforeAll(async () => {
  openApi = await readOpenApi();
  operations = new Map(
    Object.entries(openApi.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => [
        `${method.toUpperCase()} ${path}`,
        operation as Described,
      ]),
    ),
  );
});

it("every operation has an example, and a service takes and answers it as it is shown", async () => {
  const shown = readOperationExamples();
  expect(Object.keys(shown).toSorted()).toEqual([...operations.keys()].toSorted());
  const recorded = await recordExamples();
  expect(Object.keys(recorded)).toEqual(Object.keys(shown));
  for (const [name, example] of Object.entries(recorded)) {
    const before = shown[name];
    expect([name, requestOf(example)]).toEqual([name, before && requestOf(before)]);
    expect([name, differences(example.answer, before?.answer)]).toEqual([name, []]);
  }
});

it("the lines of the client are those of the source that was run", () => {
  const folder = join(import.meta.dirname, "../api-examples");
  const withoutBlanks = (text: string) => text.replaceAll(/\s+/g, "");
  const source = withoutBlanks(
    globSync("*.ts", { cwd: folder })
      .map((file) => readFileSync(join(folder, file), "utf8"))
      .join("\n"),
  );
  const lines = Object.values(readOperationExamples()).map(({ line }) => line);
  expect(lines.filter((line) => !source.includes(withoutBlanks(line)))).toEqual([]);
});

it("every example of the description validates against its schema", () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: "document", ...openApi });
  let count = 0;
  const problems = [...operations].flatMap(([name, { parameters, requestBody, responses }]) =>
    [
      ...parameters,
      ...Object.values(requestBody?.content ?? {}),
      ...Object.values(responses).flatMap(({ content }) => Object.values(content)),
    ].flatMap(({ schema, example, in: place }) => {
      if (example === undefined) return [];
      count++;
      const isReference = "$ref" in schema;
      const { $schema: _, ...own } = schema as { readonly $schema?: string };
      const validate = ajv.compile(isReference ? { $ref: `document${String(schema.$ref)}` } : own);
      // Parameters are text, whatever they stand for.
      const value = place === "query" ? fromText(example, schema) : example;
      return validate(value)
        ? []
        : [[name, JSON.stringify(value).slice(0, 200), ajv.errorsText(validate.errors)]];
    }),
  );
  expect(problems).toEqual([]);
  expect(count).toBeGreaterThan(400);
});

it("a shell takes every curl command for the request of its example", () => {
  const examples = Object.entries(readOperationExamples());
  const commands = examples.map(
    ([name]) => operations.get(name)?.["x-codeSamples"]?.find(({ lang }) => lang === "Shell")?.source ?? "",
  );
  const { stdout } = spawnSync("sh", ["-s"], {
    input: `curl() { printf '%s\\0' "$@"; printf '\\0'; }\n${commands.join("\n")}\n`,
    env: { SIGNALBOX_TOKEN: "token" },
    encoding: "utf8",
  });
  const calls = stdout.split("\0\0").slice(0, -1);
  expect(calls.length).toBe(examples.length);
  for (const [i, [name, example]] of examples.entries()) {
    const words = (calls[i] ?? "").split("\0").filter((word) => word !== "");
    const after = (flag: string) => words[words.indexOf(flag) + 1] ?? "";
    const body = words.includes("-d") ? (JSON.parse(after("-d")) as unknown) : undefined;
    const method = words.includes("-X") ? after("-X") : body === undefined ? "GET" : "POST";
    const url = new URL(words.find((word) => word.startsWith("http")) ?? "");
    expect(words).toContain("authorization: Bearer token");
    expect([name, method, body]).toEqual([name, name.split(" ")[0], example.body]);
    const values = Object.entries(example.query).map(([key, value]) => [key, [value].flat()]);
    expect(values).toEqual(
      [...new Set(url.searchParams.keys())].map((key) => [key, url.searchParams.getAll(key)]),
    );
  }
});

it("the pages are those of the description", () => {
  const pages = apiPages(openApi);
  expect(globSync("*.md", { cwd: API_PAGES_FOLDER }).toSorted()).toEqual([...pages.keys()].toSorted());
  for (const [file, text] of pages) expect(readFileSync(join(API_PAGES_FOLDER, file), "utf8")).toBe(text);
});

const requestOf = ({ params, query, body, status, contentType }: OperationExample) => ({
  names: Object.keys(params),
  query,
  body,
  status,
  contentType,
});

/** The attempts of a stored call, which has them if the first one began late: on a busy machine. */
const BY_TIME = new Set(["attempts"]);

/** Members and types; values differ, lists may be cut, and null stands for any value. */
function differences(a: unknown, b: unknown, path = ""): string[] {
  if (a === null || b === null) return [];
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === 0 || b.length === 0 ? [] : differences(a[0], b[0], `${path}[]`);
  if (typeof a !== typeof b) return [`${path}: ${typeof a}, before ${typeof b}`];
  if (typeof a !== "object" || typeof b !== "object") return [];
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  const names = [...new Set([...Object.keys(left), ...Object.keys(right)])];
  return names.flatMap((name) => {
    const isInBoth = name in left && name in right;
    if (BY_TIME.has(name) && !isInBoth) return [];
    return isInBoth
      ? differences(left[name], right[name], `${path}.${name}`)
      : [`${path}.${name}: ${name in left ? "new" : "gone"}`];
  });
}

/** The value that a query parameter stands for, by the type of its schema. */
function fromText(example: unknown, schema: { readonly type?: unknown }): unknown {
  const isNumber = schema.type === "integer" || schema.type === "number";
  if (schema.type === "array") return [example].flat();
  return isNumber ? Number(example) : example;
}
