/** Access tokens of Azure for the identity of a machine: an application, a managed identity, or a federated token of a cluster. */
import { type Fields, FORM, readAnswer, requireToken } from "./ask-server.ts";
import type { AzureIdentity } from "./cloud-identity.ts";
import { readVariableFile, requireVariable, type SourceParts, variable } from "./identity-source.ts";
import type { Expiring } from "./kept-credential.ts";

const METADATA = "http://169.254.169.254";
const RESOURCE = "https://cognitiveservices.azure.com";
const AUTHORITY = "https://login.microsoftonline.com";
const ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const WHO = "Azure";

export async function fetchAzureToken(
  parts: SourceParts,
  identity: AzureIdentity,
): Promise<Expiring<string>> {
  const { environment } = parts;
  switch (identity.identity) {
    case "environment":
      return askAuthority(parts, identity, {
        client_secret: requireVariable(environment, "AZURE_CLIENT_SECRET"),
      });
    case "workload_identity":
      return askAuthority(parts, identity, {
        client_assertion_type: ASSERTION_TYPE,
        client_assertion: readVariableFile(environment, "AZURE_FEDERATED_TOKEN_FILE"),
      });
    case "managed_identity":
      return fromMachine(parts, identity);
  }
}

/** App Service and Container Apps name an address of their own; virtual machines have the metadata service. */
async function fromMachine(
  { ask, clock, environment }: SourceParts,
  { client_id: clientId, resource = RESOURCE }: AzureIdentity,
): Promise<Expiring<string>> {
  const own = variable(environment, "IDENTITY_ENDPOINT");
  const base = variable(environment, "AZURE_POD_IDENTITY_AUTHORITY_HOST") ?? METADATA;
  const url = new URL(own ?? `${base.replace(/\/$/, "")}/metadata/identity/oauth2/token`);
  url.searchParams.set("api-version", own === undefined ? "2018-02-01" : "2019-08-01");
  url.searchParams.set("resource", resource);
  if (clientId !== undefined) url.searchParams.set("client_id", clientId);
  const headers =
    own === undefined
      ? ["metadata", "true"]
      : ["x-identity-header", requireVariable(environment, "IDENTITY_HEADER")];
  return toToken(readAnswer(WHO, await ask({ url: url.href, headers })), clock.now());
}

async function askAuthority(
  { ask, clock, environment }: SourceParts,
  { client_id: clientId, resource = RESOURCE }: AzureIdentity,
  proof: Readonly<Record<string, string>>,
): Promise<Expiring<string>> {
  const authority = variable(environment, "AZURE_AUTHORITY_HOST") ?? AUTHORITY;
  const tenant = encodeURIComponent(requireVariable(environment, "AZURE_TENANT_ID"));
  const form = new URLSearchParams({
    grant_type: "client_credentials",
    client_id: clientId ?? requireVariable(environment, "AZURE_CLIENT_ID"),
    scope: `${resource}/.default`,
    ...proof,
  });
  const url = `${authority.replace(/\/$/, "")}/${tenant}/oauth2/v2.0/token`;
  const answer = await ask({ url, method: "POST", headers: FORM, body: form.toString() });
  return toToken(readAnswer(WHO, answer), clock.now());
}

/** The servers send seconds as numbers and as texts. */
function toToken(answer: Fields, now: number): Expiring<string> {
  const { access_token: token, expires_in: lifetime, expires_on: end } = answer;
  const seconds = lifetime === undefined ? Number(end) - now / 1000 : Number(lifetime);
  if (!(seconds > 0)) throw new Error(`${WHO} does not say when the token expires`);
  return { value: requireToken(WHO, token), expiresAt: now + seconds * 1000 };
}
