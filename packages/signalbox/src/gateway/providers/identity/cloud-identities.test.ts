import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ERROR_TABLE } from "@signalbox/protocol";
import { UpstreamClient } from "../../../engines/relay/index.ts";
import { askServer } from "./ask-server.ts";
import { CloudIdentities, type KeyIdentity } from "./cloud-identities.ts";

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly form: Record<string, string>;
  readonly body: string;
}

let server: Server;
let base: string;
let folder: string;
let client: UpstreamClient;
let seen: Seen[];
let now: number;
/** A body, a status, or both. */
type Answer = object | string | number | readonly [number, object | string];
/** By method and path. */
let answers: Map<string, Answer | ((request: Seen) => Answer)>;
/** Answers wait for it. */
let gate: Promise<void>;

beforeAll(async () => {
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      const url = request.url ?? "";
      const method = request.method ?? "";
      const form = Object.fromEntries(new URLSearchParams(body));
      const one = { method, url, headers: request.headers, form, body };
      seen.push(one);
      const set = answers.get(`${method} ${url.split("?", 1)[0]}`) ?? 404;
      const answer: Answer = typeof set === "function" ? (set as (request: Seen) => Answer)(one) : set;
      void gate.then(() => {
        const [status, text] = Array.isArray(answer)
          ? (answer as [number, object | string])
          : typeof answer === "number"
            ? [answer, ""]
            : [200, answer];
        response.writeHead(status);
        response.end(typeof text === "object" ? JSON.stringify(text) : text);
      });
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  client = new UpstreamClient({
    connectTimeoutMs: 10_000,
    firstByteTimeoutMs: 60_000,
    stallTimeoutMs: 60_000,
    idleTimeoutMs: 10_000,
  });
});
afterAll(() => {
  client.close();
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-identity-"));
  seen = [];
  answers = new Map();
  gate = Promise.resolve();
  now = Date.parse("2026-01-01T00:00:00Z");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function identities(environment: Record<string, string>, limitMs?: number): CloudIdentities {
  return new CloudIdentities({
    ask: askServer(client, limitMs),
    clock: { now: () => now },
    environment,
    region: "eu-west-1",
  });
}

const SLUGS = { aws: "aws-bedrock", google: "google-vertex-ai", azure: "azure-openai" } as const;

function identity(
  cloud: keyof typeof SLUGS,
  description: object,
  environment: Record<string, string>,
  limitMs?: number,
): KeyIdentity {
  const found = identities(environment, limitMs).find(SLUGS[cloud], JSON.stringify(description));
  if (found === null) throw new Error("the description is not one");
  return found;
}

/** What the requests of the provider carry. */
async function credential(of: KeyIdentity): Promise<string> {
  const [name, value = ""] = await of.headers();
  expect(name).toBe("authorization");
  return value.replace(/^Bearer /, "");
}

async function accessKey(of: KeyIdentity): Promise<unknown> {
  return JSON.parse(await credential(of));
}

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const HOUR = 3_600_000;
const inAnHour = () => new Date(now + HOUR).toISOString();
const session = (id: string) => ({
  AccessKeyId: id,
  SecretAccessKey: "secret",
  Token: "session",
  Expiration: inAnHour(),
});
const key = (id: string) => ({ accessKeyId: id, secretAccessKey: "secret", sessionToken: "session" });
/** As the service writes it. */
const XML = (
  action: string,
  id: string,
) => `<${action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <${action}Result>
    <AssumedRoleUser><Arn>arn:aws:sts::1:assumed-role/x</Arn><AssumedRoleId>AROA:x</AssumedRoleId></AssumedRoleUser>
    <Credentials>
      <AccessKeyId>${id}</AccessKeyId>
      <SecretAccessKey>secret</SecretAccessKey>
      <SessionToken>session</SessionToken>
      <Expiration>${inAnHour()}</Expiration>
    </Credentials>
  </${action}Result>
</${action}Response>`;
const ROLE = (account: number, name: string) => `arn:aws:iam::${account}:role/${name}`;

describe("an identity of AWS", () => {
  const IMDS = "GET /latest/meta-data/iam/security-credentials/";

  it("is that of the instance, by the second version of its metadata service", async () => {
    answers.set("PUT /latest/api/token", ({ headers }) =>
      headers["x-aws-ec2-metadata-token-ttl-seconds"] === "21600" ? "imds-token" : 400,
    );
    const withToken = (answer: Answer) => (request: Seen) =>
      request.headers["x-aws-ec2-metadata-token"] === "imds-token" ? answer : 401;
    answers.set(IMDS, withToken("my-role"));
    answers.set(`${IMDS}my-role`, withToken({ Code: "Success", ...session("ASIAINSTANCE") }));
    const own = identity("aws", { identity: "instance" }, { AWS_EC2_METADATA_SERVICE_ENDPOINT: base });
    expect(await accessKey(own)).toEqual(key("ASIAINSTANCE"));
  });

  it("says so when the instance has no role, or may not take it", async () => {
    answers.set("PUT /latest/api/token", "imds-token");
    const environment = { AWS_EC2_METADATA_SERVICE_ENDPOINT: base };
    await expect(identity("aws", { identity: "instance" }, environment).headers()).rejects.toThrow("no role");
    answers.set(IMDS, "my-role");
    answers.set(`${IMDS}my-role`, { Code: "AssumeRoleUnauthorizedAccess", Message: "…" });
    await expect(identity("aws", { identity: "instance" }, environment).headers()).rejects.toThrow(
      "AssumeRoleUnauthorizedAccess",
    );
  });

  it("is that of the container, with the token of its file", async () => {
    answers.set("GET /v1/credentials", session("ASIACONTAINER"));
    const own = identity(
      "aws",
      { identity: "container" },
      {
        AWS_CONTAINER_CREDENTIALS_FULL_URI: `${base}/v1/credentials`,
        AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file("token", "eks-token\n"),
      },
    );
    expect(await accessKey(own)).toEqual(key("ASIACONTAINER"));
    expect(seen[0]?.headers.authorization).toBe("eks-token");
  });

  it("sends the token of a container to no server that is far and has no TLS", async () => {
    for (const host of ["example.com", "127.0.0.1.example.com", "169.254.170.99"]) {
      const environment = { AWS_CONTAINER_CREDENTIALS_FULL_URI: `http://${host}/v1/credentials` };
      await expect(identity("aws", { identity: "container" }, environment).headers()).rejects.toThrow("TLS");
    }
  });

  it("is a role for the web identity of a pod, whose file is read for every exchange", async () => {
    answers.set("POST /", () => XML("AssumeRoleWithWebIdentity", "ASIAWEB"));
    const path = file("jwt", "jwt-1");
    const own = identity(
      "aws",
      { identity: "web_identity", session_name: "box-1" },
      {
        AWS_ENDPOINT_URL_STS: `${base}/`,
        AWS_ROLE_ARN: ROLE(1, "pod"),
        AWS_WEB_IDENTITY_TOKEN_FILE: path,
      },
    );
    expect(await accessKey(own)).toEqual(key("ASIAWEB"));
    expect(seen[0]?.form).toMatchObject({
      Action: "AssumeRoleWithWebIdentity",
      Version: "2011-06-15",
      RoleArn: ROLE(1, "pod"),
      RoleSessionName: "box-1",
      WebIdentityToken: "jwt-1",
    });
    expect(seen[0]?.headers.authorization).toBeUndefined();
    writeFileSync(path, "jwt-2");
    now += HOUR;
    await own.headers();
    expect(seen[1]?.form["WebIdentityToken"]).toBe("jwt-2");
  });

  it("takes one role after the other, each signed with the credentials of the one before", async () => {
    const Credentials = { ...session("ASIASECOND"), SessionToken: "session" };
    answers.set("POST /", ({ form }) =>
      form["RoleArn"] === ROLE(1, "first")
        ? XML("AssumeRole", "ASIAFIRST")
        : { AssumeRoleResponse: { AssumeRoleResult: { Credentials } } },
    );
    const own = identity(
      "aws",
      { identity: "environment", role_arn: [ROLE(1, "first"), ROLE(2, "models")], external_id: "x-1" },
      {
        AWS_ENDPOINT_URL_STS: base,
        AWS_ACCESS_KEY_ID: "AKIAOPERATOR",
        AWS_SECRET_ACCESS_KEY: "operators-secret",
      },
    );
    expect(await accessKey(own)).toEqual(key("ASIASECOND"));
    expect(seen.map(({ form }) => [form["Action"], form["RoleArn"], form["ExternalId"]])).toEqual([
      ["AssumeRole", ROLE(1, "first"), undefined],
      ["AssumeRole", ROLE(2, "models"), "x-1"],
    ]);
    expect(seen[0]?.headers.authorization).toMatch(
      /Credential=AKIAOPERATOR\/\d{8}\/eu-west-1\/sts\/aws4_request/,
    );
    expect(seen[1]?.headers.authorization).toContain("Credential=ASIAFIRST/");
    expect(seen[1]?.headers["x-amz-security-token"]).toBe("session");
  });

  it("that is refused says why, and is tried again after a second", async () => {
    answers.set("POST /", 403);
    const environment = {
      AWS_ENDPOINT_URL_STS: base,
      AWS_ROLE_ARN: ROLE(1, "pod"),
      AWS_WEB_IDENTITY_TOKEN_FILE: file("jwt", "x"),
    };
    const own = identity("aws", { identity: "web_identity" }, environment);
    const refusal =
      "The identity web_identity of aws-bedrock gave no credential: AWS refused the role: HTTP 403";
    await expect(own.headers()).rejects.toThrow(refusal);
    await expect(own.headers()).rejects.toMatchObject({
      code: ERROR_TABLE.gateway_identity_failed.code,
      status: 502,
    });
    expect(seen).toHaveLength(1);
    expect(own.state).toEqual({
      source: "web_identity",
      expiresAt: null,
      error: expect.any(String) as string,
    });
    now += 1000;
    answers.set("POST /", XML("AssumeRoleWithWebIdentity", "ASIAWEB"));
    expect(await accessKey(own)).toEqual(key("ASIAWEB"));
    expect(own.state).toEqual({ source: "web_identity", expiresAt: now + HOUR, error: null });
  });

  it("shows the code of a refusal in XML, and no path of a file that is missing", async () => {
    const xml = "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code></Error></ErrorResponse>";
    answers.set("POST /", [403, xml]);
    const environment = { AWS_ENDPOINT_URL_STS: base, AWS_ROLE_ARN: ROLE(1, "pod") };
    const refused = { ...environment, AWS_WEB_IDENTITY_TOKEN_FILE: file("jwt", "x") };
    await expect(identity("aws", { identity: "web_identity" }, refused).headers()).rejects.toThrow(
      "AWS refused the role: AccessDenied",
    );
    const missing = { ...environment, AWS_WEB_IDENTITY_TOKEN_FILE: join(folder, "none") };
    const own = identity("aws", { identity: "web_identity" }, missing);
    const error: unknown = await Promise.resolve(own.headers()).catch((cause: unknown) => cause);
    expect(String(error)).toContain("the file of AWS_WEB_IDENTITY_TOKEN_FILE cannot be read");
    expect(String(error)).not.toContain(folder);
  });
});

describe("an identity of Google", () => {
  it("is that of the metadata server", async () => {
    answers.set("GET /computeMetadata/v1/instance/service-accounts/default/token", ({ headers }) =>
      headers["metadata-flavor"] === "Google" ? { access_token: "ya29.machine", expires_in: 3599 } : 403,
    );
    const own = identity(
      "google",
      { identity: "metadata" },
      { GCE_METADATA_HOST: base.slice("http://".length) },
    );
    expect(await credential(own)).toBe("ya29.machine");
  });

  const federation = (source: object, rest: object = {}) => ({
    type: "external_account",
    audience: "//iam.googleapis.com/pool",
    subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
    token_url: `${base}/v1/token`,
    credential_source: source,
    ...rest,
  });
  const federated = (config: object, environment: Record<string, string> = {}) =>
    identity(
      "google",
      { identity: "workload_identity" },
      { ...environment, GOOGLE_APPLICATION_CREDENTIALS: file("config.json", JSON.stringify(config)) },
    );

  it("is a federation, and acts as a service account", async () => {
    answers.set("POST /v1/token", { access_token: "federated", expires_in: 3600 });
    answers.set("POST /impersonate", { accessToken: "ya29.account", expireTime: inAnHour() });
    const own = federated(
      federation(
        {
          file: file("subject", '{"id_token":"subject-token"}'),
          format: { type: "json", subject_token_field_name: "id_token" },
        },
        { service_account_impersonation_url: `${base}/impersonate` },
      ),
    );
    expect(await credential(own)).toBe("ya29.account");
    expect(seen[0]?.form).toMatchObject({
      audience: "//iam.googleapis.com/pool",
      subject_token: "subject-token",
    });
    expect(seen[1]?.headers.authorization).toBe("Bearer federated");
    expect(own.state.expiresAt).toBe(now + HOUR);
  });

  it("is a federation whose token an address gives", async () => {
    answers.set("GET /subject", ({ headers }) => (headers["x-own"] === "1" ? "subject-token\n" : 403));
    answers.set("POST /v1/token", { access_token: "federated", expires_in: 3600 });
    const own = federated(federation({ url: `${base}/subject`, headers: { "X-Own": "1" } }));
    expect(await credential(own)).toBe("federated");
  });

  it("is that of a machine of AWS, which signs a request for Google to send", async () => {
    answers.set("POST /v1/token", { access_token: "federated", expires_in: 3600 });
    const own = federated(
      federation({
        environment_id: "aws1",
        regional_cred_verification_url:
          "https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15",
      }),
      {
        AWS_ACCESS_KEY_ID: "AKIAOPERATOR",
        AWS_SECRET_ACCESS_KEY: "operators-secret",
        AWS_REGION: "eu-west-1",
      },
    );
    expect(await credential(own)).toBe("federated");
    const sent = JSON.parse(decodeURIComponent(seen[0]?.form["subject_token"] ?? "")) as {
      url: string;
      headers: { key: string; value: string }[];
    };
    expect(sent.url).toBe("https://sts.eu-west-1.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15");
    const headers = Object.fromEntries(sent.headers.map((one) => [one.key, one.value]));
    expect(headers).toMatchObject({
      host: "sts.eu-west-1.amazonaws.com",
      "x-goog-cloud-target-resource": "//iam.googleapis.com/pool",
    });
    expect(headers["authorization"]).toContain("SignedHeaders=host;x-amz-date;x-goog-cloud-target-resource");
  });

  it("that Google refuses says what Google says", async () => {
    const said = { error: "invalid_grant", error_description: "The token has expired." };
    answers.set("POST /v1/token", [400, said]);
    const own = federated(federation({ file: file("subject", "old") }));
    await expect(own.headers()).rejects.toThrow(
      "Google refused the identity: invalid_grant: The token has expired.",
    );
  });
});

describe("an identity of Azure", () => {
  it("is the managed identity of a virtual machine", async () => {
    answers.set("GET /metadata/identity/oauth2/token", ({ headers }) =>
      headers["metadata"] === "true" ? { access_token: "aad", expires_in: "3599" } : 400,
    );
    const own = identity(
      "azure",
      { identity: "managed_identity", client_id: "c-1" },
      { AZURE_POD_IDENTITY_AUTHORITY_HOST: base },
    );
    expect(await credential(own)).toBe("aad");
    const url = new URL(seen[0]?.url ?? "", base);
    expect(url.searchParams.get("resource")).toBe("https://cognitiveservices.azure.com");
    expect(url.searchParams.get("client_id")).toBe("c-1");
    expect(own.state.expiresAt).toBe(now + 3_599_000);
  });

  it("is that of an app, at the address that its environment names", async () => {
    answers.set("GET /msi/token", { access_token: "aad", expires_on: String((now + HOUR) / 1000) });
    const own = identity(
      "azure",
      { identity: "managed_identity" },
      { IDENTITY_ENDPOINT: `${base}/msi/token`, IDENTITY_HEADER: "h" },
    );
    expect(await credential(own)).toBe("aad");
    expect(seen[0]?.headers["x-identity-header"]).toBe("h");
    expect(own.state.expiresAt).toBe(now + HOUR);
  });

  it("is that of a pod for its federated token, or of an application for its secret", async () => {
    answers.set("POST /tenant-1/oauth2/v2.0/token", { access_token: "aad", expires_in: 3599 });
    const environment = {
      AZURE_AUTHORITY_HOST: `${base}/`,
      AZURE_TENANT_ID: "tenant-1",
      AZURE_CLIENT_ID: "client-1",
      AZURE_CLIENT_SECRET: "client-secret",
      AZURE_FEDERATED_TOKEN_FILE: file("jwt", "federated"),
    };
    const scope = "https://cognitiveservices.azure.com/.default";
    expect(await credential(identity("azure", { identity: "workload_identity" }, environment))).toBe("aad");
    expect(seen[0]?.form).toMatchObject({ client_id: "client-1", client_assertion: "federated", scope });
    expect(seen[0]?.form["client_secret"]).toBeUndefined();
    expect(await credential(identity("azure", { identity: "environment" }, environment))).toBe("aad");
    expect(seen[1]?.form).toMatchObject({ client_secret: "client-secret", scope });
  });

  it("that is refused has the code of Entra", async () => {
    const said = { error: "invalid_client", error_description: "AADSTS7000215: Invalid client secret." };
    answers.set("POST /t/oauth2/v2.0/token", [401, said]);
    const environment = {
      AZURE_AUTHORITY_HOST: base,
      AZURE_TENANT_ID: "t",
      AZURE_CLIENT_ID: "c",
      AZURE_CLIENT_SECRET: "s",
    };
    const own = identity("azure", { identity: "environment" }, environment);
    await expect(own.headers()).rejects.toThrow("invalid_client: AADSTS7000215");
  });
});

describe("a credential", () => {
  const METADATA = "GET /computeMetadata/v1/instance/service-accounts/default/token";
  const metadata = (limitMs?: number) =>
    identity(
      "google",
      { identity: "metadata" },
      { GCE_METADATA_HOST: base.slice("http://".length) },
      limitMs,
    );

  it("is fetched once for callers that come together, and kept", async () => {
    answers.set(METADATA, { access_token: "one", expires_in: 3600 });
    const own = metadata();
    expect(await Promise.all([1, 2, 3].map(() => credential(own)))).toEqual(["one", "one", "one"]);
    expect(own.headers()).toEqual(["authorization", "Bearer one"]);
    expect(seen).toHaveLength(1);
  });

  it("is replaced ahead of its end, and no caller waits for that", async () => {
    answers.set(METADATA, { access_token: "one", expires_in: 3600 });
    const own = metadata();
    await own.headers();
    answers.set(METADATA, { access_token: "two", expires_in: 3600 });
    let open: () => void = () => undefined;
    gate = new Promise((resolve) => (open = resolve));
    now += HOUR - 4 * 60_000;
    expect(own.headers()).toEqual(["authorization", "Bearer one"]);
    expect(own.headers()).toEqual(["authorization", "Bearer one"]);
    open();
    await expect.poll(() => own.headers()).toEqual(["authorization", "Bearer two"]);
    expect(seen).toHaveLength(2);
  });

  it("is used until a minute before its end while no newer one can be had, and the reason is shown", async () => {
    answers.set(METADATA, { access_token: "one", expires_in: 3600 });
    const own = metadata();
    await own.headers();
    answers.set(METADATA, 503);
    now += HOUR - 2 * 60_000;
    expect(own.headers()).toEqual(["authorization", "Bearer one"]);
    await expect.poll(() => own.state.error).toContain("HTTP 503");
    now += 60_000;
    await expect(own.headers()).rejects.toThrow("HTTP 503");
  });

  it("that the cloud refuses is replaced, unless it is new", async () => {
    answers.set(METADATA, () => ({ access_token: `token-${seen.length}`, expires_in: 3600 }));
    const own = metadata();
    await own.headers();
    own.refuse();
    expect(await credential(own)).toBe("token-1");
    now += 60_000;
    const { generation } = own;
    own.refuse();
    expect(await credential(own)).toBe("token-2");
    expect(own.generation).not.toBe(generation);
  });

  it("that is not sent in time is given up", async () => {
    gate = new Promise(() => undefined);
    await expect(metadata(50).headers()).rejects.toThrow("did not answer in time");
  });
});

describe("a text", () => {
  const own = () => identities({});

  it("that describes no identity is a key", () => {
    expect(own().find("aws-bedrock", "AKIAIOSFODNN7EXAMPLE:secret")).toBeNull();
    expect(own().find("google-vertex-ai", '{"client_email":"a","private_key":"b"}')).toBeNull();
    expect(own().find("openai", '{"identity":"instance"}')).toBeNull();
  });

  it("that describes one badly gives no credential, and says what is wrong", async () => {
    const bad = [
      ["aws-bedrock", '{"identity":"instanze"}', "identity"],
      ["aws-bedrock", '{"identity":"instance","role_arn":"role"}', "role_arn"],
      ["azure-openai", '{"identity":"instance"}', "identity"],
      ["google-vertex-ai", '{"identity":"metadata","rol":1}', "rol"],
      ["aws-bedrock", '{"identity":"instance"', "not valid"],
    ] as const;
    for (const [slug, text, what] of bad) {
      await expect(own().find(slug, text)?.headers()).rejects.toThrow(what);
    }
    expect(seen).toEqual([]);
  });
});
