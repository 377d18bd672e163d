import type { Dialect } from "./dialect.ts";
import type { NeutralError } from "./neutral/neutral-error.ts";
import type { NeutralUsage } from "./neutral/usage.ts";
import type { RequestOptions, ResponseContext, TranslatedRequest } from "./options.ts";

/** Throws `InvalidRequestError` or `UnsupportedFieldError`. */
export function translateRequest(
  from: Dialect,
  to: Dialect,
  body: unknown,
  options: RequestOptions,
): TranslatedRequest {
  throw new Error(`no translation of ${typeof body} from ${from} to ${to} (${options.model})`);
}

export function translateResponse(context: ResponseContext, body: unknown): Record<string, unknown> {
  throw new Error(`no translation of ${typeof body} from ${context.to} to ${context.from}`);
}

/** The usage in a response body of a dialect, or null. */
export function readUsage(dialect: Dialect, body: unknown): NeutralUsage | null {
  throw new Error(`no usage of ${typeof body} in ${dialect}`);
}

/** An upstream's error in the client's dialect. The status is the upstream's. */
export function translateError(
  context: Pick<ResponseContext, "from" | "to">,
  status: number,
  body: unknown,
): { readonly status: number; readonly body: Record<string, unknown> } {
  throw new Error(`no translation of ${typeof body} ${status} from ${context.to}`);
}

/** An error body as the SDK of `dialect` reads it. */
export function encodeError(dialect: Dialect, error: NeutralError): Record<string, unknown> {
  throw new Error(`no ${error.kind} in ${dialect}`);
}

/** The kind that an HTTP status stands for. */
export function errorKindOf(status: number): NeutralError["kind"] {
  throw new Error(`no kind of ${status}`);
}

/**
 * Input tokens of a request, estimated from its text and parts. For `messages/count_tokens` where the upstream has no
 * such endpoint. The answer in that dialect is `{input_tokens}`.
 */
export function estimateInputTokens(dialect: Dialect, body: unknown): number {
  throw new Error(`no estimate of ${typeof body} in ${dialect}`);
}
