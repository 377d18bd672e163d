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
  throw new Error(`no embeddings of ${typeof body} for ${options.model}`);
}

/** Gemini's response to `batchEmbedContents` as an OpenAI embeddings response. */
export function embeddingsFromGemini(context: EmbeddingsContext, body: unknown): Record<string, unknown> {
  throw new Error(`no embeddings of ${typeof body} for ${context.model}`);
}
