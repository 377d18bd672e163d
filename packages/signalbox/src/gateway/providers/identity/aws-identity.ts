/** Credentials of AWS for the identity of a machine, as AWS's own clients get them. */
import { type AwsCredentials, signAws } from "../aws-signature.ts";
import {
  type CredentialAnswer,
  type Fields,
  FORM,
  parseJson,
  readAnswer,
  requireToken,
} from "./ask-server.ts";
import type { AwsIdentity } from "./cloud-identity.ts";
import {
  type Environment,
  readTextFile,
  readVariableFile,
  requireVariable,
  type SourceParts,
  variable,
} from "./identity-source.ts";
import type { Expiring } from "./kept-credential.ts";

export interface AwsSourceParts extends SourceParts {
  /** The configured region; AWS_REGION comes first. */
  readonly region: string | undefined;
}

const METADATA = "http://169.254.169.254";
const METADATA_IPV6 = "http://[fd00:ec2::254]";
const CONTAINER = "http://169.254.170.2";
/** Where a container's token may be sent without TLS: to this machine, and to the agents of ECS and EKS. */
const CONTAINER_HOSTS: ReadonlySet<string> = new Set([
  "169.254.170.2",
  "169.254.170.23",
  "[fd00:ec2::23]",
  "localhost",
  "[::1]",
]);
const LOOPBACK = /^127(?:\.\d{1,3}){3}$/;
const METADATA_TOKEN_S = 21_600;
/** The longest time for a role that is taken with the credentials of another one. */
const SESSION_S = 3600;
const DEFAULT_REGION = "us-east-1";
const DEFAULT_SESSION = "signalbox";
const WHO = "AWS";

export async function fetchAwsCredentials(
  parts: AwsSourceParts,
  identity: AwsIdentity,
): Promise<Expiring<AwsCredentials>> {
  let own = await ownCredentials(parts, identity);
  const roles = [identity.role_arn ?? []].flat();
  for (const [i, arn] of roles.entries()) {
    const externalId = i === roles.length - 1 ? identity.external_id : undefined;
    own = await askTokenService(
      parts,
      {
        Action: "AssumeRole",
        RoleArn: arn,
        RoleSessionName: identity.session_name ?? DEFAULT_SESSION,
        DurationSeconds: String(SESSION_S),
        ...(externalId === undefined ? {} : { ExternalId: externalId }),
      },
      own.value,
    );
  }
  return own;
}

export function awsRegion({ environment, region }: AwsSourceParts): string {
  return (
    variable(environment, "AWS_REGION") ??
    variable(environment, "AWS_DEFAULT_REGION") ??
    region ??
    DEFAULT_REGION
  );
}

function ownCredentials(
  parts: AwsSourceParts,
  identity: AwsIdentity,
): Expiring<AwsCredentials> | Promise<Expiring<AwsCredentials>> {
  switch (identity.identity) {
    case "environment":
      return fromEnvironment(parts.environment);
    case "web_identity":
      return fromWebIdentity(parts, identity.session_name);
    case "container":
      return fromContainer(parts);
    case "instance":
      return fromInstance(parts);
  }
}

/** These do not say when they expire: a restart changes them. */
function fromEnvironment(environment: Environment): Expiring<AwsCredentials> {
  const sessionToken = variable(environment, "AWS_SESSION_TOKEN");
  return {
    value: {
      accessKeyId: requireToken("AWS_ACCESS_KEY_ID", requireVariable(environment, "AWS_ACCESS_KEY_ID")),
      secretAccessKey: requireToken(
        "AWS_SECRET_ACCESS_KEY",
        requireVariable(environment, "AWS_SECRET_ACCESS_KEY"),
      ),
      sessionToken: sessionToken === undefined ? null : requireToken("AWS_SESSION_TOKEN", sessionToken),
    },
    expiresAt: Infinity,
  };
}

/** A pod's or a job's token for the credentials of a role. The request is not signed. */
function fromWebIdentity(
  parts: AwsSourceParts,
  sessionName: string | undefined,
): Promise<Expiring<AwsCredentials>> {
  const { environment } = parts;
  return askTokenService(
    parts,
    {
      Action: "AssumeRoleWithWebIdentity",
      RoleArn: requireVariable(environment, "AWS_ROLE_ARN"),
      RoleSessionName: sessionName ?? variable(environment, "AWS_ROLE_SESSION_NAME") ?? DEFAULT_SESSION,
      WebIdentityToken: readVariableFile(environment, "AWS_WEB_IDENTITY_TOKEN_FILE"),
      DurationSeconds: String(SESSION_S),
    },
    null,
  );
}

/** Tasks of ECS, pods of EKS. */
async function fromContainer({ ask, environment }: SourceParts): Promise<Expiring<AwsCredentials>> {
  const url = containerUrl(environment);
  const file = variable(environment, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  const token =
    file === undefined
      ? variable(environment, "AWS_CONTAINER_AUTHORIZATION_TOKEN")
      : readTextFile(file, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  const headers =
    token === undefined ? [] : ["authorization", requireToken("AWS_CONTAINER_AUTHORIZATION_TOKEN", token)];
  return toCredentials(readAnswer("the server of the container", await ask({ url: url.href, headers })));
}

function containerUrl(environment: Environment): URL {
  const relative = variable(environment, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  if (relative !== undefined) return new URL(relative.replace(/^\/*/, "/"), CONTAINER);
  const url = new URL(requireVariable(environment, "AWS_CONTAINER_CREDENTIALS_FULL_URI"));
  const isLocal = CONTAINER_HOSTS.has(url.hostname) || LOOPBACK.test(url.hostname);
  if (url.protocol !== "https:" && !isLocal) {
    throw new Error("AWS_CONTAINER_CREDENTIALS_FULL_URI names a server that is neither local nor uses TLS");
  }
  return url;
}

/** The second version of the metadata service: a token of the session first. The first version is not used. */
export async function fromInstance({ ask, environment }: SourceParts): Promise<Expiring<AwsCredentials>> {
  const who = "the metadata service";
  if (variable(environment, "AWS_EC2_METADATA_DISABLED")?.toLowerCase() === "true") {
    throw new Error("AWS_EC2_METADATA_DISABLED is set");
  }
  const isIpv6 = variable(environment, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE")?.toLowerCase() === "ipv6";
  const own = variable(environment, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
  const base = (own ?? (isIpv6 ? METADATA_IPV6 : METADATA)).replace(/\/$/, "");
  const begun = await ask({
    url: `${base}/latest/api/token`,
    method: "PUT",
    headers: ["x-aws-ec2-metadata-token-ttl-seconds", String(METADATA_TOKEN_S)],
    body: "",
  });
  if (begun.status !== 200) throw new Error(`${who} refused a session: HTTP ${begun.status}`);
  const headers = ["x-aws-ec2-metadata-token", requireToken(who, begun.body.trim())];
  const path = `${base}/latest/meta-data/iam/security-credentials/`;
  const { status, body } = await ask({ url: path, headers });
  const role = body.trim().split("\n", 1)[0] ?? "";
  if (status !== 200 || !/^[\w+=,.@-]{1,64}$/.test(role)) throw new Error("this instance has no role");
  return toCredentials(readAnswer(who, await ask({ url: path + role, headers })));
}

function toCredentials(answer: Fields): Expiring<AwsCredentials> {
  const { AccessKeyId, SecretAccessKey, Token, SessionToken, Expiration, Code } = answer;
  // The metadata service reports a role that cannot be taken with status 200.
  if (AccessKeyId === undefined && typeof Code === "string") {
    throw new Error(`${WHO} refused the identity: ${Code.slice(0, 200)}`);
  }
  const expiresAt = typeof Expiration === "number" ? Expiration * 1000 : Date.parse(String(Expiration));
  if (Number.isNaN(expiresAt)) throw new Error(`${WHO} does not say when the credential expires`);
  return {
    value: {
      accessKeyId: requireToken(WHO, AccessKeyId),
      secretAccessKey: requireToken(WHO, SecretAccessKey),
      sessionToken: requireToken(WHO, SessionToken ?? Token),
    },
    expiresAt,
  };
}

async function askTokenService(
  parts: AwsSourceParts,
  form: Readonly<Record<string, string>>,
  credentials: AwsCredentials | null,
): Promise<Expiring<AwsCredentials>> {
  const { ask, clock, environment } = parts;
  const region = awsRegion(parts);
  const suffix = region.startsWith("cn-") ? ".cn" : "";
  const url = new URL(
    variable(environment, "AWS_ENDPOINT_URL_STS") ?? `https://sts.${region}.amazonaws.com${suffix}/`,
  );
  const body = new URLSearchParams({ ...form, Version: "2011-06-15" }).toString();
  const request = { method: "POST", host: url.host, target: url.pathname, body: Buffer.from(body) };
  const signature =
    credentials === null
      ? []
      : signAws({ ...request, region, service: "sts", now: clock.now() }, credentials);
  const answer = await ask({
    url: url.href,
    method: "POST",
    headers: [...FORM, "accept", "application/json", ...signature],
    body,
  });
  if (answer.status !== 200) refuse(answer);
  return toCredentials(readSession(answer.body, form["Action"] ?? ""));
}

/** The service answers in XML unless it takes `accept`. */
function readSession(text: string, action: string): Fields {
  const json = parseJson(text);
  if (json === undefined) {
    const member = (name: string) => new RegExp(`<${name}>\\s*([^<]+?)\\s*</${name}>`).exec(text)?.[1];
    const names = ["AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"];
    return Object.fromEntries(names.map((name) => [name, member(name)]));
  }
  type Answer = Readonly<
    Record<string, Readonly<Record<string, { readonly Credentials?: Fields }>> | undefined>
  >;
  return (json as Answer | null)?.[`${action}Response`]?.[`${action}Result`]?.Credentials ?? {};
}

function refuse({ status, body }: CredentialAnswer): never {
  const code = /<Code>([^<]{1,200})<|"Code"\s*:\s*"([^"]{1,200})"/.exec(body);
  throw new Error(`${WHO} refused the role: ${code?.[1] ?? code?.[2] ?? `HTTP ${status}`}`);
}
