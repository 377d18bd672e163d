/** Writes objects to an S3-compatible server: one signed PUT each, with the bucket in the path. */
import { createHash } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import { readStart } from "../../core/response-start.ts";
import { type AwsCredentials, signAws } from "../providers/aws-signature.ts";

export interface S3BucketOptions {
  /** Scheme and host, e.g. `https://s3.eu-central-1.amazonaws.com`. */
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  readonly credentials: AwsCredentials;
  readonly clock: Clock;
}

export interface S3Object {
  readonly key: string;
  readonly body: Buffer;
  readonly contentType: string;
}

/** Time of one upload. */
const TIMEOUT_MS = 120_000;
/** Of an error answer that is shown to operators. */
const MAX_ERROR_TEXT = 300;
const MAX_ANSWER_BYTES = 64 * 1024;

export class S3Bucket {
  readonly #options: S3BucketOptions;
  readonly #origin: URL;

  constructor(options: S3BucketOptions) {
    this.#options = options;
    this.#origin = new URL(options.endpoint);
  }

  /** Resolves when the server has stored the object. Rejects with a text for operators, without credentials. */
  async put({ key, body, contentType }: S3Object, signal: AbortSignal): Promise<void> {
    const { region, bucket, credentials, clock } = this.#options;
    const target = `${this.#origin.pathname.replace(/\/$/, "")}/${[bucket, ...key.split("/")].map(encodeSegment).join("/")}`;
    const signed = signAws(
      { method: "PUT", host: this.#origin.host, target, body, region, service: "s3", now: clock.now() },
      credentials,
    );
    const headers = new Headers({
      "content-type": contentType,
      // The server compares it with what it has received.
      "content-md5": createHash("md5").update(body).digest("base64"),
    });
    for (let i = 0; i < signed.length; i += 2) headers.set(signed[i] ?? "", signed[i + 1] ?? "");
    const response = await fetch(new URL(target, this.#origin), {
      method: "PUT",
      headers,
      body: new Uint8Array(body),
      redirect: "error",
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    const { bytes } = await readStart(response, MAX_ANSWER_BYTES);
    if (!response.ok) {
      throw new Error(
        `PUT ${bucket}/${key}: status ${response.status}: ${bytes.toString("utf8").slice(0, MAX_ERROR_TEXT)}`,
      );
    }
  }
}

/** RFC 3986: everything but unreserved characters, as the signature has it. */
function encodeSegment(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
