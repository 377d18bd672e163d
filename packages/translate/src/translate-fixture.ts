/** Shared by the tests: options with counted ids, and the translation of a whole stream. */
import type { Dialect } from "./dialect.ts";
import {
  createStreamTranslator,
  translateRequest,
  type RequestOptions,
  type ResponseContext,
  type TargetTraits,
  type TranslatedRequest,
} from "./index.ts";

export const MODELS: Readonly<Record<Dialect, string>> = {
  chat: "gpt-5",
  messages: "claude-opus-4-6",
  responses: "gpt-5",
  gemini: "gemini-2.5-pro",
};

/** The smallest request of each dialect. */
export const PLAIN: Readonly<Record<Dialect, Record<string, unknown>>> = {
  chat: { model: "m", messages: [{ role: "user", content: "Hello" }] },
  messages: { model: "m", max_tokens: 100, messages: [{ role: "user", content: "Hello" }] },
  responses: { model: "m", input: "Hello" },
  gemini: { contents: [{ role: "user", parts: [{ text: "Hello" }] }] },
};

export const DIALECT_NAMES: readonly Dialect[] = ["chat", "messages", "responses", "gemini"];

export function options(
  to: Dialect,
  given: Partial<RequestOptions> & { readonly traits?: TargetTraits } = {},
): RequestOptions {
  let count = 0;
  const { traits, ...rest } = given;
  return {
    model: MODELS[to],
    target: traits ?? {},
    dropUnsupported: false,
    newId: (prefix) => `${prefix}new${++count}`,
    now: 1_700_000_000,
    ...rest,
  };
}

export function translate(
  from: Dialect,
  to: Dialect,
  body: unknown,
  given: Partial<RequestOptions> & { readonly traits?: TargetTraits } = {},
): TranslatedRequest {
  return translateRequest(from, to, body, options(to, given));
}

/** The context of a streamed or plain call of the client's dialect `from` to an upstream of dialect `to`. */
export function contextOf(
  from: Dialect,
  to: Dialect,
  more: Record<string, unknown> = {},
  given: Partial<RequestOptions> = {},
): ResponseContext {
  return translate(from, to, { ...PLAIN[from], ...more }, { dropUnsupported: true, ...given }).context;
}

export function sse(events: readonly unknown[], named = false): string {
  return events
    .map((event) => {
      const data = typeof event === "string" ? event : JSON.stringify(event);
      const name = named ? `event: ${(event as { type: string }).type}\n` : "";
      return `${name}data: ${data}\n\n`;
    })
    .join("");
}

/** The client's stream for an upstream's stream that ends. */
export function translateStream(context: ResponseContext, upstream: string): string {
  const translator = createStreamTranslator(context);
  return translator.write(new TextEncoder().encode(upstream)) + translator.end();
}

/** The payloads of a stream. */
export function payloads(stream: string): Record<string, unknown>[] {
  return stream
    .split("\n\n")
    .filter((event) => event !== "")
    .map((event) => event.slice(event.indexOf("data: ") + 6))
    .map((data) => (data === "[DONE]" ? { done: true } : (JSON.parse(data) as Record<string, unknown>)));
}
