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

## Cloud identities

The variable or file of a provider key (\`secret_id\`) of Amazon Bedrock, Google Vertex AI and Azure OpenAI may contain the description of an identity of the machine in place of a key:

\`\`\`sh
AWS_BEDROCK_API_KEY='{"identity":"web_identity","role_arn":"arn:aws:iam::123456789012:role/models"}'
\`\`\`

The credentials come from where the cloud's own clients get them, are kept, and are replaced five minutes ahead of their end, by one request however many calls wait. The key list shows
source, end and the last error (\`identity\`). If there is no credential, a call gets error 2046 (502) after 5 s per request at most, or the next key or step; nothing is sent
without one. A key that is stored through the API is never an identity, and an account uses those variables and files only that it was given (\`gateway.providerKeys\`).

| provider | \`identity\` | credentials |
|---|---|---|
| Amazon Bedrock | \`environment\` | \`AWS_ACCESS_KEY_ID\`, \`AWS_SECRET_ACCESS_KEY\`, \`AWS_SESSION_TOKEN\` |
| | \`web_identity\` | the role \`AWS_ROLE_ARN\` for the token in \`AWS_WEB_IDENTITY_TOKEN_FILE\` (EKS, jobs of CI) |
| | \`container\` | ECS, EKS Pod Identity: \`AWS_CONTAINER_CREDENTIALS_RELATIVE_URI\` or \`…_FULL_URI\`, with \`AWS_CONTAINER_AUTHORIZATION_TOKEN\` or \`…_TOKEN_FILE\` |
| | \`instance\` | EC2: the metadata service, version 2 (\`AWS_EC2_METADATA_SERVICE_ENDPOINT\`) |
| Google Vertex AI | \`metadata\` | the metadata server (\`GCE_METADATA_HOST\`); \`service_account\` for another account of the machine |
| | \`workload_identity\` | the file of type \`external_account\` that \`GOOGLE_APPLICATION_CREDENTIALS\` names: tokens of a file or address, machines of AWS |
| Azure OpenAI | \`environment\` | \`AZURE_TENANT_ID\`, \`AZURE_CLIENT_ID\`, \`AZURE_CLIENT_SECRET\` |
| | \`managed_identity\` | the metadata service, or \`IDENTITY_ENDPOINT\`; \`client_id\` for one of several |
| | \`workload_identity\` | AKS: \`AZURE_TENANT_ID\`, \`AZURE_CLIENT_ID\`, \`AZURE_FEDERATED_TOKEN_FILE\`; \`AZURE_AUTHORITY_HOST\` |

With AWS, \`role_arn\` is a role to take with these credentials, or a list of roles to take one after the other; \`external_id\` belongs to the last of them, \`session_name\` to all.
The token service is that of \`AWS_REGION\` (\`AWS_ENDPOINT_URL_STS\`). With Azure, \`resource\` replaces \`https://cognitiveservices.azure.com\`, for the clouds of governments.
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
