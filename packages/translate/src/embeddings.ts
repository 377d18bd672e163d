/** OpenAI's embeddings and Gemini's `embedContent` and `batchEmbedContents`. */
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
import { decodeTexts } from "./gemini/decode-contents.ts";
import { toCamelCase } from "./gemini/spelling.ts";
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

/** A request of Gemini's `embedContent`, or of `batchEmbedContents`, as OpenAI's. Throws as `translateRequest` does. */
export function geminiEmbeddingsToOpenAi(
  body: unknown,
  options: Pick<RequestOptions, "model" | "dropUnsupported">,
): Pick<TranslatedEmbeddings, "body" | "dropped"> {
  const source = requireRecord(body, "body");
  const losses = new Losses("embeddings", options.dropUnsupported);
  const isBatch = source["requests"] !== undefined;
  const requests = isBatch ? requireList(source["requests"], "requests") : [source];
  const sizes: number[] = [];
  const input = requests.map((value, i) => {
    const path = isBatch ? `requests[${i}].` : "";
    const { content, model: _, ...rest } = requireRecord(value, path === "" ? "body" : `requests[${i}]`);
    for (const [field, given] of Object.entries(rest)) {
      if (given == null) continue;
      if (toCamelCase(field) === "outputDimensionality") sizes.push(optionalNumber(given, path + field) ?? 0);
      // What the embedding is for changes its quality, and no other API has the field.
      else if (toCamelCase(field) === "taskType" || field === "title") losses.note(path + field);
      else losses.refuse(path + field);
    }
    return decodeTexts(content, `${path}content`)
      .map(({ text }) => text)
      .join("\n");
  });
  return {
    body: { model: options.model, input, ...(sizes[0] === undefined ? {} : { dimensions: sizes[0] }) },
    dropped: losses.list(),
  };
}

/** OpenAI's response as that of `embedContent`, or of `batchEmbedContents`. */
export function geminiEmbeddingsFromOpenAi(body: unknown, isBatch: boolean): Record<string, unknown> {
  const response = recordOf(body);
  const embeddings = listOf(response["data"]).map((value) => ({
    values: listOf(recordOf(value)["embedding"]).map((entry) => numberOrNull(entry) ?? 0),
  }));
  const usage = recordOf(response["usage"]);
  const usageMetadata = { promptTokenCount: countOf(usage["prompt_tokens"]) };
  return isBatch
    ? { embeddings, usageMetadata }
    : { embedding: embeddings[0] ?? { values: [] }, usageMetadata };
}

/** Little-endian 32-bit floats, as OpenAI's clients decode them. */
function toBase64(values: readonly number[]): string {
  const view = new DataView(new ArrayBuffer(values.length * 4));
  for (const [i, value] of values.entries()) view.setFloat32(i * 4, value, true);
  let binary = "";
  for (let i = 0; i < view.byteLength; i++) binary += String.fromCharCode(view.getUint8(i));
  return btoa(binary);
}
