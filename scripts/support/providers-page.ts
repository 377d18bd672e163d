/** `docs/reference/providers.md`, from the provider tables. */
import { join } from "node:path";
import { BUILT_IN_PROVIDERS } from "../../packages/signalbox/src/gateway/providers/built-in.ts";
import type { ProviderDefinition } from "../../packages/signalbox/src/gateway/providers/provider.ts";

export const PROVIDERS_PAGE_PATH = join(import.meta.dirname, "../../docs/reference/providers.md");

const INTRODUCTION = `# Providers

This page is generated from the provider tables in \`packages/signalbox/src/gateway/providers\` by \`npm run docs\`.

\`/v1/{account_id}/{gateway_id}/{slug}/{path}\` forwards every method, path and query to the API of a provider. A stored key is sent in the
credential header; a caller's own credential may be in any of the listed ones. *Dialects* are the formats that the
[unified doors](../guides/doors.md) use for the provider, the preferred one first: a client that speaks one of them is not translated. A
provider without dialects has no API for conversations.

| slug | base address | credential header | dialects |
| --- | --- | --- | --- |
`;

const REST = `
\`echo\` is answered by the gateway itself: chat completions, complete and streamed, and \`models\`. \`custom-<slug>\` is a provider of an
account ([custom providers](gateway.md#providers)).

| path | target |
| --- | --- |
| \`{slug}/v1/x\` and \`{slug}/x\` of OpenAI-compatible APIs | the same |
| \`google-ai-studio/chat/completions\`, \`embeddings\`, \`models\` | below \`v1beta/openai\`, Google's OpenAI-compatible API; other paths unchanged |
| \`google-vertex-ai/v1/projects/{project}/locations/{region}/…\` | the host of the region |
| \`azure-openai/{resource}/{deployment}/…\`, \`azure-openai/{resource}/openai/…\` | the deployment, or the API of the resource |
| \`aws-bedrock/bedrock-runtime/{region}/…\` | the host of the region; \`chat/completions\` is below \`openai/v1\` |
| \`workers-ai/{model}\`, \`workers-ai/v1/chat/completions\` | the account with the same id |
| \`cohere/chat/completions\`, \`embeddings\` | below \`compatibility/v1\`; other paths unchanged |
| \`huggingface/{model}\` | \`hf-inference\`; \`chat/completions\` goes to the router |

**Azure OpenAI.** The resource is part of the host, and anyone can create one. A stored key is therefore sent only to a configured resource:
\`"providers": {"azure-openai": {"baseUrl": "https://my-resource.openai.azure.com"}}\`. Without it, callers must send their own key.

**Amazon Bedrock.** A key \`{access key id}:{secret access key}\` (or with \`:{session token}\`, or the JSON object of AWS's tools) signs each
request with Signature Version 4. A Bedrock API key, and a signature of the caller, are sent as they are. The doors need
\`providers.aws-bedrock.region\`.

**Google Vertex AI.** A key that is the key file of a service account is exchanged for an access token at Google's address
(\`providers.google-vertex-ai.tokenUrl\`), which is kept until shortly before it expires; the \`token_uri\` in the file is ignored. An access
token is sent as it is. The doors need \`providers.google-vertex-ai.project\`; \`region\` is \`global\` unless set.
`;

const PLACE = { region: "{region}", project: "{project}" };

export function providersPage(): string {
  const rows = [...BUILT_IN_PROVIDERS].sort((a, b) => (a.slug < b.slug ? -1 : 1)).map(toRow);
  return INTRODUCTION + rows.join("\n") + "\n" + REST;
}

function toRow(definition: ProviderDefinition): string {
  const { slug, baseUrl, credentialHeaders = ["authorization"], toCredential } = definition;
  const [first = "", ...others] = credentialHeaders;
  const credential = `\`${first}: ${toCredential?.("…") ?? "Bearer …"}\`${others.map((one) => `, \`${one}\``).join("")}`;
  const models =
    slug === "aws-bedrock"
      ? ["anthropic.claude", "m", "openai.m"]
      : slug === "google-vertex-ai"
        ? ["m", "claude-m", "p/m"]
        : ["m"];
  const apis = models.map((model) => definition.apis?.(model, PLACE));
  const dialects = new Set(apis.flatMap((one) => one?.calls.map(({ dialect }) => dialect) ?? []));
  const how = models.length > 1 ? " (by model)" : "";
  const shown = baseUrl
    .replace("{0}aiplatform", "{region}-aiplatform")
    .replace("{0}.openai", "{resource}.openai")
    .replace("{0}", "{region}");
  return `| \`${slug}\` | \`${shown}\` | ${credential} | ${[...dialects].join(", ")}${dialects.size > 0 ? how : ""} |`;
}
