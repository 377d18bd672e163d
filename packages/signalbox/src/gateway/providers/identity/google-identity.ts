/** Access tokens of Google for the identity of a machine: of its metadata server, or of a federation that the operator has configured. */
import { signAws } from "../aws-signature.ts";
import { type Fields, FORM, parseJson, readAnswer, requireToken } from "./ask-server.ts";
import { type AwsSourceParts, awsRegion, fetchAwsCredentials } from "./aws-identity.ts";
import type { GoogleIdentity } from "./cloud-identity.ts";
import { readTextFile, readVariableFile, variable } from "./identity-source.ts";
import type { Expiring } from "./kept-credential.ts";

const SCOPE = "https://www.googleapis.com/auth/cloud-platform";
const METADATA_HOST = "metadata.google.internal";
const TOKEN_URL = "https://sts.googleapis.com/v1/token";
const FILE_VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS";
const WHO = "Google";

export async function fetchGoogleToken(
  parts: AwsSourceParts,
  identity: GoogleIdentity,
): Promise<Expiring<string>> {
  return identity.identity === "metadata" ? fromMetadata(parts, identity) : fromFederation(parts);
}

async function fromMetadata(
  { ask, clock, environment }: AwsSourceParts,
  { service_account: account = "default" }: GoogleIdentity,
): Promise<Expiring<string>> {
  const host = variable(environment, "GCE_METADATA_HOST") ?? METADATA_HOST;
  const path = `computeMetadata/v1/instance/service-accounts/${encodeURIComponent(account)}/token`;
  const answer = await ask({ url: `http://${host}/${path}`, headers: ["metadata-flavor", "Google"] });
  return toToken(readAnswer("the metadata server", answer), clock.now());
}

/** The part of a file of type `external_account` that is used. `gcloud iam workload-identity-pools create-cred-config` writes it. */
interface FederationFile {
  readonly type?: unknown;
  readonly audience?: unknown;
  readonly subject_token_type?: unknown;
  readonly token_url?: unknown;
  readonly service_account_impersonation_url?: unknown;
  readonly service_account_impersonation?: { readonly token_lifetime_seconds?: unknown };
  readonly credential_source?: SubjectSource;
}

interface SubjectSource {
  readonly file?: unknown;
  readonly url?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly format?: { readonly type?: unknown; readonly subject_token_field_name?: unknown };
  readonly environment_id?: unknown;
  readonly regional_cred_verification_url?: unknown;
}

/** The file is the operator's, and so are the addresses in it. */
async function fromFederation(parts: AwsSourceParts): Promise<Expiring<string>> {
  const { ask, clock, environment } = parts;
  const config = parseJson(readVariableFile(environment, FILE_VARIABLE)) as FederationFile | undefined;
  if (config?.type !== "external_account") {
    throw new Error(`the file of ${FILE_VARIABLE} is not of type external_account`);
  }
  const audience = text(config.audience, "audience");
  const form = new URLSearchParams({
    grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
    requested_token_type: "urn:ietf:params:oauth:token-type:access_token",
    audience,
    subject_token_type: text(config.subject_token_type, "subject_token_type"),
    subject_token: await subjectToken(parts, config.credential_source ?? {}, audience),
    scope: SCOPE,
  });
  const url = text(config.token_url ?? TOKEN_URL, "token_url");
  const exchanged = readAnswer(WHO, await ask({ url, method: "POST", headers: FORM, body: form.toString() }));
  const token = toToken(exchanged, clock.now());
  const impersonation = config.service_account_impersonation_url;
  if (impersonation === undefined) return token;
  const lifetime = config.service_account_impersonation?.token_lifetime_seconds;
  const answer = readAnswer(
    WHO,
    await ask({
      url: text(impersonation, "service_account_impersonation_url"),
      method: "POST",
      headers: ["content-type", "application/json", "authorization", `Bearer ${token.value}`],
      body: JSON.stringify({
        scope: [SCOPE],
        ...(typeof lifetime === "number" ? { lifetime: `${lifetime}s` } : {}),
      }),
    }),
  );
  return ending(answer["accessToken"], Date.parse(String(answer["expireTime"])));
}

async function subjectToken(parts: AwsSourceParts, source: SubjectSource, audience: string): Promise<string> {
  const who = "the source of the identity token";
  if (typeof source.environment_id === "string") return awsSubjectToken(parts, source, audience);
  let content: string;
  if (typeof source.file === "string") content = readTextFile(source.file, "credential_source");
  else {
    const url = text(source.url, "credential_source.file or url");
    const answer = await parts.ask({ url, headers: Object.entries(source.headers ?? {}).flat() });
    if (answer.status !== 200) throw new Error(`${who} answered HTTP ${answer.status}`);
    content = answer.body.trim();
  }
  const { format } = source;
  if (format?.type !== "json") return requireToken(who, content);
  const member = text(format.subject_token_field_name, "subject_token_field_name");
  return requireToken(who, (parseJson(content) as Fields | undefined)?.[member]);
}

/** A machine of AWS proves who it is with a signed request, which Google sends to AWS. */
async function awsSubjectToken(
  parts: AwsSourceParts,
  { environment_id: version, regional_cred_verification_url: address }: SubjectSource,
  audience: string,
): Promise<string> {
  if (version !== "aws1") throw new Error(`environment_id ${String(version)} is not known`);
  const region = awsRegion(parts);
  const url = new URL(text(address, "regional_cred_verification_url").replace("{region}", region));
  const { value } = await fetchAwsCredentials(parts, {
    identity: variable(parts.environment, "AWS_ACCESS_KEY_ID") === undefined ? "instance" : "environment",
  });
  const target = "x-goog-cloud-target-resource";
  const signature = signAws(
    {
      method: "POST",
      host: url.host,
      target: url.pathname + url.search,
      body: Buffer.from(""),
      region,
      service: "sts",
      now: parts.clock.now(),
      extra: [target, audience],
    },
    value,
  );
  const list = ["host", url.host, ...signature];
  const headers = list.flatMap((key, i) => (i % 2 === 0 ? [{ key, value: list[i + 1] ?? "" }] : []));
  return encodeURIComponent(JSON.stringify({ url: url.href, method: "POST", headers }));
}

function toToken(answer: Fields, now: number): Expiring<string> {
  return ending(answer["access_token"], now + Number(answer["expires_in"]) * 1000);
}

function ending(token: unknown, expiresAt: number): Expiring<string> {
  if (Number.isNaN(expiresAt)) throw new Error(`${WHO} does not say when the token expires`);
  return { value: requireToken(WHO, token), expiresAt };
}

function text(value: unknown, name: string): string {
  if (typeof value === "string" && value !== "") return value;
  throw new Error(`${name} is missing in the file of ${FILE_VARIABLE}`);
}
