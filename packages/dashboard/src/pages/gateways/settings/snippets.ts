/** Generates client code for a gateway. */

export interface SnippetTarget {
  /** Scheme, host and port of the gateway. */
  readonly origin: string;
  readonly accountId: string;
  readonly gatewayId: string;
  readonly provider: string;
  /** Null: the code reads the token from the environment. */
  readonly token: string | null;
}

export type SnippetName = "curl" | "openai-ts" | "openai-python" | "anthropic";

export const SNIPPETS: readonly { readonly name: SnippetName; readonly title: string }[] = [
  { name: "curl", title: "curl" },
  { name: "openai-ts", title: "OpenAI (TypeScript)" },
  { name: "openai-python", title: "OpenAI (Python)" },
  { name: "anthropic", title: "Anthropic" },
];

export interface SnippetProvider {
  readonly slug: string;
  readonly title: string;
  readonly model: string;
  /** Environment variable of the API key; null if the provider needs none. */
  readonly keyVariable: string | null;
}

export const PROVIDERS: readonly SnippetProvider[] = [
  { slug: "echo", title: "Echo (built-in)", model: "echo", keyVariable: null },
  { slug: "openai", title: "OpenAI", model: "gpt-5-mini", keyVariable: "OPENAI_API_KEY" },
  { slug: "mistral", title: "Mistral", model: "mistral-small-latest", keyVariable: "MISTRAL_API_KEY" },
  { slug: "groq", title: "Groq", model: "llama-3.3-70b-versatile", keyVariable: "GROQ_API_KEY" },
  { slug: "deepseek", title: "DeepSeek", model: "deepseek-chat", keyVariable: "DEEPSEEK_API_KEY" },
  { slug: "openrouter", title: "OpenRouter", model: "openrouter/auto", keyVariable: "OPENROUTER_API_KEY" },
];

export function snippet(name: SnippetName, target: SnippetTarget): string {
  const provider = PROVIDERS.find(({ slug }) => slug === target.provider) ?? PROVIDERS[0];
  if (provider === undefined) return "";
  switch (name) {
    case "curl":
      return curl(target, provider);
    case "openai-ts":
      return openAiTypeScript(target, provider);
    case "openai-python":
      return openAiPython(target, provider);
    case "anthropic":
      return anthropic(target);
  }
}

function baseUrl({ origin, accountId, gatewayId }: SnippetTarget, slug: string): string {
  return `${origin}/v1/${accountId}/${gatewayId}/${slug}`;
}

function curl(target: SnippetTarget, { slug, model, keyVariable }: SnippetProvider): string {
  const lines = [
    `curl ${baseUrl(target, slug)}/chat/completions`,
    `-H "gw-aig-authorization: Bearer ${target.token ?? "$GATEWAY_TOKEN"}"`,
    ...(keyVariable === null ? [] : [`-H "Authorization: Bearer $${keyVariable}"`]),
    '-H "Content-Type: application/json"',
    `-d '${JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] })}'`,
  ];
  return lines.join(" \\\n  ");
}

function openAiTypeScript(target: SnippetTarget, { slug, model, keyVariable }: SnippetProvider): string {
  return `import OpenAI from "openai";

const client = new OpenAI({
  apiKey: ${keyVariable === null ? '"not-needed"' : `process.env.${keyVariable}`},
  baseURL: "${baseUrl(target, slug)}",
  defaultHeaders: { "gw-aig-authorization": ${bearerTs(target.token)} },
});

const completion = await client.chat.completions.create({
  model: "${model}",
  messages: [{ role: "user", content: "Hello" }],
});
console.log(completion.choices[0]?.message.content);
`;
}

function openAiPython(target: SnippetTarget, { slug, model, keyVariable }: SnippetProvider): string {
  const bearer =
    target.token === null ? `f"Bearer {os.environ['GATEWAY_TOKEN']}"` : `"Bearer ${target.token}"`;
  return `import os
from openai import OpenAI

client = OpenAI(
    api_key=${keyVariable === null ? '"not-needed"' : `os.environ["${keyVariable}"]`},
    base_url="${baseUrl(target, slug)}",
    default_headers={"gw-aig-authorization": ${bearer}},
)

completion = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello"}],
)
print(completion.choices[0].message.content)
`;
}

function anthropic(target: SnippetTarget): string {
  return `import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({
  apiKey: process.env.ANTHROPIC_API_KEY,
  baseURL: "${baseUrl(target, "anthropic")}",
  defaultHeaders: { "gw-aig-authorization": ${bearerTs(target.token)} },
});

const message = await client.messages.create({
  model: "claude-sonnet-4-5",
  max_tokens: 1024,
  messages: [{ role: "user", content: "Hello" }],
});
console.log(message.content);
`;
}

function bearerTs(token: string | null): string {
  return token === null ? "`Bearer ${process.env.GATEWAY_TOKEN}`" : `"Bearer ${token}"`;
}
