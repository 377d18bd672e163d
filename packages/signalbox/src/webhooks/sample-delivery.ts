/** Signed sample deliveries, as the source's provider would send them, for the `test` route and `signalbox webhooks send`. */
import { adaptSample } from "./adapt-sample.ts";
import type { Source } from "./source.ts";

export interface SampleOptions {
  readonly entity: string;
  readonly secret: string;
  readonly deliveryId: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The address that the sample will be posted to. */
  readonly url: string;
  /** Event type instead of the sample's. */
  readonly type?: string | undefined;
  /** Replaces the sample's body. */
  readonly body?: string | undefined;
  /** Replaces or adds headers. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface SampleRequest {
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

export function createSampleRequest(source: Source, options: SampleOptions): SampleRequest {
  const sample = adaptSample(source, source.kind.sample(options), options);
  const { body, contentType } = sample;
  const signed = source.scheme.sign({
    secret: options.secret,
    body: Buffer.from(body),
    now: options.now,
    deliveryId: options.deliveryId,
    url: options.url,
  });
  return {
    url:
      signed.query === undefined
        ? options.url
        : `${options.url}${options.url.includes("?") ? "&" : "?"}${signed.query}`,
    headers: { "content-type": contentType, ...sample.headers, ...options.headers, ...signed.headers },
    body,
  };
}
