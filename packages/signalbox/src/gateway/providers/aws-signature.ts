/** AWS Signature Version 4: the headers that authorise one request with an access key. */
import { createHash, createHmac, createSecretKey } from "node:crypto";

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | null;
}

export interface AwsRequest {
  readonly method: string;
  readonly host: string;
  /** Path and query as they are sent. */
  readonly target: string;
  readonly body: Buffer;
  readonly region: string;
  readonly service: string;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Name and value of one more header to sign, whose name comes after the others. */
  readonly extra?: readonly [string, string];
}

const KEY_TEXT = /^((?:AKIA|ASIA)[A-Z0-9]{8,124}):([^\s:]{16,128})(?::([^\s:]+))?$/;
const ALGORITHM = "AWS4-HMAC-SHA256";

/** `id:secret`, `id:secret:session token`, or the JSON object that AWS tools print. Null for any other text, such as a Bedrock API key. */
export function parseAwsCredentials(text: string): AwsCredentials | null {
  const [, accessKeyId, secretAccessKey, sessionToken] = KEY_TEXT.exec(text) ?? [];
  if (accessKeyId !== undefined && secretAccessKey !== undefined) {
    return { accessKeyId, secretAccessKey, sessionToken: sessionToken ?? null };
  }
  if (!text.startsWith("{")) return null;
  try {
    const value = JSON.parse(text) as Record<string, unknown>;
    const id = value["accessKeyId"] ?? value["AccessKeyId"];
    const secret = value["secretAccessKey"] ?? value["SecretAccessKey"];
    const token = value["sessionToken"] ?? value["SessionToken"];
    if (typeof id !== "string" || typeof secret !== "string") return null;
    return {
      accessKeyId: id,
      secretAccessKey: secret,
      sessionToken: typeof token === "string" ? token : null,
    };
  } catch {
    return null;
  }
}

/** The headers to add: name, value, name, value, … They cover the host, the target, the time and the body. */
export function signAws(request: AwsRequest, credentials: AwsCredentials): string[] {
  const time = new Date(request.now).toISOString().replaceAll(/[-:]|\.\d{3}/g, "");
  const day = time.slice(0, 8);
  const bodyHash = sha256(request.body);
  const { sessionToken } = credentials;
  const isS3 = request.service === "s3";
  const signed: [string, string][] = [
    ["host", request.host],
    ...(isS3 ? [["x-amz-content-sha256", bodyHash] as [string, string]] : []),
    ["x-amz-date", time],
    ...(sessionToken === null ? [] : [["x-amz-security-token", sessionToken] as [string, string]]),
    ...(request.extra === undefined ? [] : [[...request.extra] as [string, string]]),
  ];
  const names = signed.map(([name]) => name).join(";");
  const question = request.target.indexOf("?");
  const path = question === -1 ? request.target : request.target.slice(0, question);
  const query = question === -1 ? "" : request.target.slice(question + 1);
  const canonical = [
    request.method,
    isS3 ? path : canonicalPath(path),
    canonicalQuery(query),
    ...signed.map(([name, value]) => `${name}:${value}`),
    "",
    names,
    bodyHash,
  ].join("\n");
  const scope = `${day}/${request.region}/${request.service}/aws4_request`;
  const text = [ALGORITHM, time, scope, sha256(canonical)].join("\n");
  const key = [day, request.region, request.service, "aws4_request"].reduce<string | Buffer>(
    (previous, part) => hmac(previous, part),
    `AWS4${credentials.secretAccessKey}`,
  );
  const signature = hmac(key, text).toString("hex");
  const authorization = `${ALGORITHM} Credential=${credentials.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`;
  return ["authorization", authorization, ...signed.slice(1).flat()];
}

/** Every service but S3 expects the segments of the path, as sent, to be encoded once more. */
function canonicalPath(path: string): string {
  return path.split("/").map(encode).join("/");
}

function canonicalQuery(query: string): string {
  if (query === "") return "";
  return query
    .split("&")
    .map((pair) => {
      const equals = pair.indexOf("=");
      const [name, value] = equals === -1 ? [pair, ""] : [pair.slice(0, equals), pair.slice(equals + 1)];
      return `${encode(decode(name))}=${encode(decode(value))}`;
    })
    .sort()
    .join("&");
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** RFC 3986: everything but unreserved characters. */
function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function sha256(data: string | Buffer): string {
  return createHash("sha256").update(data).digest("hex");
}

function hmac(key: string | Buffer, text: string): Buffer {
  // An object, because Node looks long at a key of another type.
  const secret = typeof key === "string" ? createSecretKey(key, "utf8") : createSecretKey(key);
  return createHmac("sha256", secret).update(text).digest();
}
