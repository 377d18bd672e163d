/** A step with its body as the provider reads it. */
import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from "node:zlib";
import { inspectBody } from "../step/body-facts.ts";
import type { Step } from "../step/step.ts";

const MAX_DECODED_BYTES = 16 * 1024 * 1024;

/** A compressed body is decompressed, within limits. */
export function readableStep(step: Step): Step {
  const { upstream } = step;
  const encoding = headerOf(upstream.headers, "content-encoding")?.trim().toLowerCase() ?? "identity";
  const decode = DECODERS[encoding];
  if (decode === undefined || upstream.body.kind !== "whole") return step;
  try {
    const bytes = decode(upstream.body.bytes, { maxOutputLength: MAX_DECODED_BYTES });
    const headers = upstream.headers.filter(
      (_, i) => upstream.headers[i - (i % 2)]?.toLowerCase() !== "content-encoding",
    );
    const { model, maxOutputTokens, choices, tier } = inspectBody(bytes, false);
    const body = { kind: "whole", bytes } as const;
    return {
      ...step,
      model: model ?? step.model,
      maxOutputTokens,
      choices,
      tier,
      upstream: { ...upstream, headers, body },
    };
  } catch {
    return step;
  }
}

type Decoder = (bytes: Buffer, options: { maxOutputLength: number }) => Buffer;

const DECODERS: Readonly<Record<string, Decoder | undefined>> = {
  gzip: gunzipSync,
  "x-gzip": gunzipSync,
  deflate: inflateSync,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
};

export function headerOf(headers: readonly string[], wanted: string): string | undefined {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? "";
    if (name.length === wanted.length && name.toLowerCase() === wanted) return headers[i + 1];
  }
  return undefined;
}
