/**
 * A server that plays S3: it stores objects of one bucket in memory and refuses what S3 refuses. It computes signatures from the request that it
 * received, by the published rules, with code of its own.
 */
import { createHash, createHmac } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

export interface S3Peer {
  readonly url: string;
  readonly objects: Map<string, Buffer>;
  /** Keys of all writes, in order. */
  readonly puts: string[];
  /** Returns a status to refuse a write with, or null. */
  refuse: (key: string) => number | null;
  close(): Promise<void>;
}

export const S3_KEY_ID = "AKIATESTTESTTEST";
export const S3_SECRET = "a-secret/with+characters";
const REGION = "eu-test-1";
const BUCKET = "calls";

export async function startS3(): Promise<S3Peer> {
  const objects = new Map<string, Buffer>();
  const puts: string[] = [];
  const peer: Pick<S3Peer, "objects" | "puts" | "refuse"> = { objects, puts, refuse: () => null };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks);
      const key = decodeURIComponent((request.url ?? "").slice(`/${BUCKET}/`.length));
      const problem = problemOf(request, body);
      const status = problem === null ? peer.refuse(key) : 403;
      if (status !== null) {
        response.writeHead(status);
        response.end(`<Error><Code>${problem ?? "SlowDown"}</Code></Error>`);
        return;
      }
      puts.push(key);
      objects.set(key, body);
      response.writeHead(200, { etag: `"${createHash("md5").update(body).digest("hex")}"` });
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return Object.assign(peer, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  });
}

function problemOf(request: IncomingMessage, body: Buffer): string | null {
  const { headers, method, url = "" } = request;
  if (method !== "PUT" || !url.startsWith(`/${BUCKET}/`)) return "NoSuchBucket";
  const match =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$/.exec(
      headers.authorization ?? "",
    );
  if (match === null) return "AccessDenied";
  const [, keyId, day = "", region, names = "", signature] = match;
  if (keyId !== S3_KEY_ID) return "InvalidAccessKeyId";
  if (region !== REGION) return "AuthorizationHeaderMalformed";
  const sha = createHash("sha256").update(body).digest("hex");
  if (headers["x-amz-content-sha256"] !== sha) return "XAmzContentSHA256Mismatch";
  if (headers["content-md5"] !== createHash("md5").update(body).digest("base64")) return "BadDigest";
  for (const name of ["host", "x-amz-content-sha256", "x-amz-date"]) {
    if (!names.split(";").includes(name)) return "AccessDenied";
  }
  const [path, query = ""] = url.split("?");
  const canonical = [
    method,
    path,
    query,
    ...names.split(";").map((name) => `${name}:${String(headers[name]).trim()}`),
    "",
    names,
    sha,
  ].join("\n");
  const time = String(headers["x-amz-date"]);
  const text = `AWS4-HMAC-SHA256\n${time}\n${day}/${region}/s3/aws4_request\n${createHash("sha256").update(canonical).digest("hex")}`;
  const mac = (key: string | Buffer, data: string) => createHmac("sha256", key).update(data).digest();
  const signing = mac(mac(mac(mac(`AWS4${S3_SECRET}`, day), region), "s3"), "aws4_request");
  return mac(signing, text).toString("hex") === signature ? null : "SignatureDoesNotMatch";
}
