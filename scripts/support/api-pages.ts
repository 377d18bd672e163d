/** `docs/reference/api/`: every operation of `/openapi.json` with a curl command, a line of the client, and what a running service has answered. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  EXAMPLES_FILE,
  type OperationExample,
} from "../../packages/signalbox/src/http/operation-examples.ts";

export const API_PAGES_FOLDER = join(import.meta.dirname, "../../docs/reference/api");

interface Area {
  readonly file: string;
  readonly title: string;
  readonly introduction: string;
  readonly groups: readonly Group[];
}

interface Group {
  readonly title: string;
  readonly paths: RegExp;
}

const ACCOUNT = String.raw`^/accounts/\{account_id\}`;
const GATEWAY = String.raw`${ACCOUNT}/ai-gateway/gateways/\{gateway_id\}`;
const group = (title: string, paths: string): Group => ({ title, paths: new RegExp(paths) });

/** A path belongs to the first group that it matches. */
const AREAS: readonly Area[] = [
  {
    file: "gateway",
    title: "API: gateway",
    introduction:
      "Gateways, stored calls, usage, provider keys, prices, limits, dynamic routes and guardrails. Calls of models are not part of it: see [gateway](../gateway.md).",
    groups: [
      group(
        "Stored calls and usage",
        `${ACCOUNT}/ai-gateway/(logs|usage)|${GATEWAY}/(logs|usage)|/tokens/\\{token_id\\}/usage$|^/log_push`,
      ),
      group("Provider keys", "/provider_configs|^/provider_keys"),
      group("Custom providers", "/custom-providers"),
      group("Prices", "/ai-gateway/prices"),
      group("Limits, budgets and credit", "/ai-gateway/(limits|budgets)|/(budgets|credit)$"),
      group("Dynamic routes and circuits", `${GATEWAY}/(routes|circuits)`),
      group("Guardrails", "/guardrails"),
      group("Gateways", "/ai-gateway/gateways"),
    ],
  },
  {
    file: "webhooks",
    title: "API: webhooks",
    introduction:
      "Sources, deliveries, routes and what they deliver. Senders post to `/webhooks/…`: see [webhooks](../webhooks.md).",
    groups: [
      group("Sources and their routes", "/webhooks/sources"),
      group("Deliveries", "/webhooks/(late-)?deliveries"),
      group("Events", "/webhooks/events"),
      group("Bulk replays", "/webhooks/replays"),
      group("Examples", "/webhooks/examples"),
      group("Listeners", "/webhooks/listeners"),
      group("Issues", "/webhooks/issues"),
    ],
  },
  {
    file: "agents",
    title: "API: agents",
    introduction:
      "Agents and their instances, for operators. Methods are called at `/agents/…`: see [agents](../agents.md).",
    groups: [
      group("Work of an instance", "/(queue|dead-letters|schedules)"),
      group("Agents and instances", "/agents"),
    ],
  },
  {
    file: "tags",
    title: "API: tags",
    introduction: "Tags of resources: see [tags](../tags.md).",
    groups: [group("Jobs", "/tags/jobs"), group("Tags of a zone", "^/zones"), group("Tags", "/tags")],
  },
  {
    file: "accounts",
    title: "API: accounts and service",
    introduction:
      "Accounts, tokens, alerts, the audit log, and the service itself: see [accounts](../accounts.md).",
    groups: [
      group("Tokens", "/tokens"),
      group("Audit log", "/audit_logs"),
      group("Alerts", "/alerts"),
      group("Accounts", "^/accounts(/\\{account_id\\})?$"),
      group("Service", "^/(login-links|cluster|backup)"),
    ],
  },
];

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>;
}

interface Operation {
  readonly name: string;
  readonly path: string;
  readonly summary: string;
  readonly "x-signalbox-access": string;
  readonly "x-codeSamples"?: readonly { readonly lang: string; readonly source: string }[];
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: { readonly "application/json": { readonly schema: Schema } } };
  readonly responses: Readonly<
    Record<string, { readonly content: Readonly<Record<string, { readonly example?: unknown }>> }>
  >;
}

interface Schema {
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

/** Page by file name. */
export function apiPages(openApi: OpenApi): ReadonlyMap<string, string> {
  const left = new Set(operationsOf(openApi));
  const pages = AREAS.map((area) => {
    const groups = area.groups.map(({ title, paths }) => {
      const operations = [...left].filter(({ path }) => paths.test(path));
      for (const one of operations) left.delete(one);
      return { title, operations };
    });
    return { area, groups };
  });
  if (left.size > 0) throw new Error(`no area: ${[...left].map(({ name }) => name).join(", ")}`);
  const byFile = pages.map(({ area, groups }): [string, string] => [
    `${area.file}.md`,
    `# ${area.title}\n\n${area.introduction} All operations, and how to read these pages: [API](index.md).\n\n${groups
      .map(({ title, operations }) => `## ${title}\n\n${operations.map(section).join("\n")}`)
      .join("\n")}`,
  ]);
  const index = pages.map(
    ({ area, groups }) =>
      `## ${area.title.replace("API: ", "").replace(/^./, (first) => first.toUpperCase())}\n\n| operation | what it does |\n| --- | --- |\n${groups
        .flatMap(({ operations }) => operations)
        .map(
          (one) => `| [\`${one.name}\`](${area.file}.md#${fragment(headingOf(one))}) | ${headingOf(one)} |`,
        )
        .join("\n")}\n`,
  );
  return new Map([...byFile, ["index.md", `${INTRODUCTION}${index.join("\n")}`]]);
}

const INTRODUCTION = `# API

This page and those of the areas are generated from \`GET /openapi.json\` of a running service by \`npm run docs\`; the document itself has the schemas and
the same examples, for tools that read OpenAPI. Paths are also served below \`/client/v4\`.

Each operation is shown as a curl command and as a line for [\`@signalbox/client\`](../client.md), with the answer of a real service: ids, times and
durations are replaced, lists are cut after two rows. They begin with

\`\`\`sh
export SIGNALBOX_TOKEN=$(cat .signalbox/root-token)   # in the folder of the server; or a token with the permission that the operation requires
\`\`\`

\`\`\`ts
import { SignalboxClient } from "@signalbox/client";

const client = new SignalboxClient({ url: "http://127.0.0.1:8787", token: process.env.SIGNALBOX_TOKEN });
const account = client.account();
\`\`\`

Answers are in an envelope, \`{"success", "errors", "messages", "result"}\`; the client returns its \`result\`. The codes of failures are on a
[page of their own](../errors.md). An operation for which the client has no method is sent with \`client.request\`.

`;

function operationsOf({ paths }: OpenApi): Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...(operation as Omit<Operation, "name" | "path">),
      path,
      name: `${method.toUpperCase()} ${path}`,
    })),
  );
}

function headingOf({ path, summary }: Operation): string {
  const [first = ""] = summary.split(/[.;:](?:\s|$)/);
  return path.startsWith("/zones/") ? `${first} (zone)` : first;
}

function section(operation: Operation): string {
  const { name, summary, parameters, requestBody, responses } = operation;
  const query = parameters.filter((one) => one.in === "query");
  const samples = operation["x-codeSamples"] ?? [];
  const [answer] = Object.entries(responses["200"]?.content ?? {});
  const [type, content] = answer ?? ["", undefined];
  const refusal = responses["default"]?.content["application/json"]?.example;
  return [
    `### ${headingOf(operation)}`,
    `\`${name}\` · requires \`${operation["x-signalbox-access"]}\``,
    summary,
    ...(query.length === 0 ? [] : [`Query: ${query.map(member).join(", ")}.`]),
    ...bodyLine(requestBody?.content["application/json"].schema),
    ...samples.map(({ lang, source }) => block(lang === "Shell" ? "sh" : "ts", source)),
    ...(refusal === undefined
      ? []
      : ["A server without this part of the configuration answers:", json(refusal)]),
    ...(content?.example === undefined
      ? []
      : [
          `<details><summary>Answer${type === "application/json" ? "" : ` (${type})`}</summary>`,
          typeof content.example === "string" ? block("txt", content.example) : json(content.example),
          "</details>",
        ]),
  ]
    .join("\n\n")
    .concat("\n");
}

function bodyLine(schema: Schema | undefined): string[] {
  const members = Object.entries(schema?.properties ?? {});
  if (members.length === 0) return [];
  const required = new Set(schema?.required);
  const described = members.map(([name, one]) => member({ name, schema: one, required: required.has(name) }));
  return [`Body: ${described.join(", ")}.`];
}

function member({ name, schema, required }: { name: string; schema: Schema; required: boolean }): string {
  const type = typeName(schema);
  const more = [...(type === "" ? [] : [type]), ...(required ? ["**required**"] : [])];
  return more.length === 0 ? `\`${name}\`` : `\`${name}\` (${more.join(", ")})`;
}

/** Short, for a reader: the document has the whole schema. */
function typeName(schema: Schema): string {
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum !== undefined) {
    const values = schema.enum.map((value) => `\`${String(value)}\``);
    return values.length > 8 ? "string" : values.join(" or ");
  }
  if (schema.anyOf !== undefined)
    return [...new Set(schema.anyOf.map(typeName).filter((name) => name !== ""))].join(" or ");
  if (schema.type === "array") {
    const items = schema.items === undefined ? "" : typeName(schema.items);
    return items === "" ? "list" : `list of ${items}`;
  }
  return [schema.type ?? []].flat().join(" or ");
}

const block = (language: string, text: string) => `\`\`\`${language}\n${text.trimEnd()}\n\`\`\``;
const json = (value: unknown) => block("json", JSON.stringify(value, null, 2));

/** As GitHub derives it. */
function fragment(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(" ", "-");
}

export function writeApiPages(openApi: OpenApi): void {
  for (const [file, text] of apiPages(openApi)) writeFileSync(join(API_PAGES_FOLDER, file), text);
}

/** One operation per line, so that a change of the interface is a change of a line. */
export function writeExamples(examples: Readonly<Record<string, OperationExample>>): void {
  const lines = Object.entries(examples).map(
    ([name, example]) => `${JSON.stringify(name)}: ${JSON.stringify(example)}`,
  );
  writeFileSync(EXAMPLES_FILE, `{\n${lines.join(",\n")}\n}\n`);
}
