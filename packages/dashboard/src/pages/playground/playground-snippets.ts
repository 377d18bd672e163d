/** The code that sends the request of the playground. Tokens and keys are read from the environment. */
import type { SnippetName } from "../gateways/settings/snippets.ts";
import { type ChatBody, type PlaygroundForm, toChatBody, toGatewayHeaders } from "./playground-request.ts";

export interface CallTarget {
  readonly origin: string;
  readonly accountId: string;
  readonly gatewayId: string;
  readonly hasToken: boolean;
  /** Whether the caller sends the provider's key; otherwise the gateway has it. */
  readonly hasProviderKey: boolean;
}

export function compatUrl({
  origin,
  accountId,
  gatewayId,
}: Pick<CallTarget, "origin" | "accountId" | "gatewayId">): string {
  return `${origin}/v1/${encodeURIComponent(accountId)}/${encodeURIComponent(gatewayId)}/compat`;
}

export function playgroundSnippet(name: SnippetName, target: CallTarget, form: PlaygroundForm): string {
  const body = toChatBody(form);
  const headers = toGatewayHeaders(form);
  switch (name) {
    case "curl":
      return curl(target, body, headers);
    case "openai-ts":
      return openAiTypeScript(target, body, headers);
    case "openai-python":
      return openAiPython(target, body, headers);
    case "anthropic":
      return anthropic(target, form, headers);
  }
}

type Headers = Readonly<Record<string, string>>;

function curl(target: CallTarget, body: ChatBody, headers: Headers): string {
  const lines = [
    `curl ${body.stream === true ? "-N " : ""}${compatUrl(target)}/chat/completions`,
    ...(target.hasToken ? ['-H "gw-aig-authorization: Bearer $GATEWAY_TOKEN"'] : []),
    ...(target.hasProviderKey ? ['-H "Authorization: Bearer $PROVIDER_API_KEY"'] : []),
    ...Object.entries(headers).map(([name, value]) => `-H "${name}: ${value}"`),
    '-H "Content-Type: application/json"',
    // A single quote ends the text of a shell; it is written outside of it.
    `-d '${JSON.stringify(body, null, 2).replaceAll("'", "'\\''")}'`,
  ];
  return lines.join(" \\\n  ");
}

function openAiTypeScript(target: CallTarget, body: ChatBody, headers: Headers): string {
  const lines = [
    'import OpenAI from "openai";',
    "",
    "const client = new OpenAI({",
    `  apiKey: ${target.hasProviderKey ? "process.env.PROVIDER_API_KEY" : '"not-needed"'},`,
    `  baseURL: ${JSON.stringify(compatUrl(target))},`,
    ...headersTs(target, headers),
    "});",
    "",
    `const ${body.stream === true ? "stream" : "completion"} = await client.chat.completions.create(${code(body)});`,
    ...(body.stream === true
      ? [
          "for await (const chunk of stream) {",
          '  process.stdout.write(chunk.choices[0]?.delta?.content ?? "");',
          "}",
        ]
      : ["console.log(completion.choices[0]?.message.content);"]),
  ];
  return `${lines.join("\n")}\n`;
}

function openAiPython(target: CallTarget, body: ChatBody, headers: Headers): string {
  const all = [
    ...(target.hasToken ? [`        "gw-aig-authorization": f"Bearer {os.environ['GATEWAY_TOKEN']}",`] : []),
    ...Object.entries(headers).map(
      ([name, value]) => `        ${JSON.stringify(name)}: ${JSON.stringify(value)},`,
    ),
  ];
  const members = Object.entries(body).map(([name, value]) => `    ${name}=${python(value, "    ")},`);
  const lines = [
    "import os",
    "from openai import OpenAI",
    "",
    "client = OpenAI(",
    `    api_key=${target.hasProviderKey ? 'os.environ["PROVIDER_API_KEY"]' : '"not-needed"'},`,
    `    base_url=${JSON.stringify(compatUrl(target))},`,
    ...(all.length === 0 ? [] : ["    default_headers={", ...all, "    },"]),
    ")",
    "",
    `${body.stream === true ? "stream" : "completion"} = client.chat.completions.create(`,
    ...members,
    ")",
    ...(body.stream === true
      ? [
          "for chunk in stream:",
          "    if chunk.choices:",
          '        print(chunk.choices[0].delta.content or "", end="")',
        ]
      : ["print(completion.choices[0].message.content)"]),
  ];
  return `${lines.join("\n")}\n`;
}

/** Anthropic's SDK adds `/v1/messages` to the address. Its requests name a limit of tokens. */
function anthropic(target: CallTarget, form: PlaygroundForm, headers: Headers): string {
  const { messages, max_tokens: maxTokens, stream, ...rest } = toChatBody(form);
  const body = {
    ...rest,
    max_tokens: maxTokens ?? 1024,
    ...(form.system === "" ? {} : { system: form.system }),
    messages: messages.filter(({ role }) => role !== "system"),
  };
  const lines = [
    'import Anthropic from "@anthropic-ai/sdk";',
    "",
    "const client = new Anthropic({",
    `  apiKey: ${target.hasProviderKey ? "process.env.PROVIDER_API_KEY" : '"not-needed"'},`,
    `  baseURL: ${JSON.stringify(compatUrl(target))},`,
    ...headersTs(target, headers),
    "});",
    "",
    ...(stream === true
      ? [
          `const stream = client.messages.stream(${code(body)});`,
          'stream.on("text", (text) => process.stdout.write(text));',
          "await stream.finalMessage();",
        ]
      : [`const message = await client.messages.create(${code(body)});`, "console.log(message.content);"]),
  ];
  return `${lines.join("\n")}\n`;
}

function headersTs(target: CallTarget, headers: Headers): string[] {
  const all = [
    ...(target.hasToken ? ['    "gw-aig-authorization": `Bearer ${process.env.GATEWAY_TOKEN}`,'] : []),
    ...Object.entries(headers).map(
      ([name, value]) => `    ${JSON.stringify(name)}: ${JSON.stringify(value)},`,
    ),
  ];
  return all.length === 0 ? [] : ["  defaultHeaders: {", ...all, "  },"];
}

/** JSON is valid TypeScript; names without quotes read better. */
function code(value: unknown): string {
  return JSON.stringify(value, null, 2).replaceAll(/^(\s*)"([a-z_]+)":/gm, "$1$2:");
}

function python(value: unknown, indent: string): string {
  if (value === true) return "True";
  if (value === false) return "False";
  if (value === null) return "None";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}    `;
  const members = Array.isArray(value)
    ? value.map((item) => `${inner}${python(item, inner)},`)
    : Object.entries(value).map(([name, item]) => `${inner}${JSON.stringify(name)}: ${python(item, inner)},`);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  return members.length === 0 ? `${open}${close}` : [open, ...members, `${indent}${close}`].join("\n");
}
