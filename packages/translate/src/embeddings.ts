/** OpenAI's embeddings and Gemini's `batchEmbedContents`. */
import { InvalidRequestError } from "./errors.ts";
import {
  countOf,
  listOf,
  numberOrNull,
  optionalNumber,
  recordOf,
  requireList,
  requireRecord,
} from "./json.ts";
import { Losses } from "./losses.ts";
import type { RequestOptions } from "./options.ts";

/** What the response of an embeddings call has to remember of its request. */
export interface EmbeddingsContext {
  readonly model: string;
  readonly encoding: "float" | "base64";
}

export interface TranslatedEmbeddings {
  /** The body of Gemini's `batchEmbedContents`. */
  readonly body: Record<string, unknown>;
  readonly dropped: readonly string[];
  readonly context: EmbeddingsContext;
}

/** An OpenAI embeddings request as Gemini's `batchEmbedContents`. Throws as `translateRequest` does. */
export function embeddingsToGemini(
  body: unknown,
  options: Pick<RequestOptions, "model" | "dropUnsupported">,
): TranslatedEmbeddings {
  const source = requireRecord(body, "body");
  const losses = new Losses("gemini", options.dropUnsupported);
  const { input, dimensions, encoding_format: encoding, user, ...rest } = source;
  if (user != null) losses.note("user");
  for (const [field, value] of Object.entries(rest)) {
    if (value != null && field !== "model") losses.refuse(field);
  }
  if (encoding != null && encoding !== "float" && encoding !== "base64") {
    throw new InvalidRequestError("encoding_format", "encoding_format must be float or base64");
  }
  const size = optionalNumber(dimensions, "dimensions");
  const texts = typeof input === "string" ? [input] : requireList(input, "input");
  const model = `models/${options.model}`;
  const requests = texts.map((text, i) => {
    if (typeof text !== "string") {
      throw new InvalidRequestError(
        `input[${i}]`,
        `input[${i}] must be a string: token lists belong to one provider`,
      );
    }
    const content = { parts: [{ text }] };
    return { model, content, ...(size === null ? {} : { outputDimensionality: size }) };
  });
  return {
    body: { requests },
    dropped: losses.list(),
    context: { model: options.model, encoding: encoding === "base64" ? "base64" : "float" },
  };
}

/** Gemini's response to `batchEmbedContents` as an OpenAI embeddings response. */
export function embeddingsFromGemini(context: EmbeddingsContext, body: unknown): Record<string, unknown> {
  const response = recordOf(body);
  const data = listOf(response["embeddings"]).map((value, index) => {
    const values = listOf(recordOf(value)["values"]).map((entry) => numberOrNull(entry) ?? 0);
    return {
      object: "embedding",
      index,
      embedding: context.encoding === "base64" ? toBase64(values) : values,
    };
  });
  const usage = recordOf(response["usageMetadata"]);
  const tokens = countOf(usage["promptTokenCount"] ?? usage["totalTokenCount"]);
  return {
    object: "list",
    data,
    model: context.model,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  };
}

/** Little-endian 32-bit floats, as OpenAI's clients decode them. */
function toBase64(values: readonly number[]): string {
  const view = new DataView(new ArrayBuffer(values.length * 4));
  for (const [i, value] of values.entries()) view.setFloat32(i * 4, value, true);
  let binary = "";
  for (let i = 0; i < view.byteLength; i++) binary += String.fromCharCode(view.getUint8(i));
  return btoa(binary);
}
