/** One server that is a provider of every dialect by its paths, and that fails: with an error, or in the middle of a stream. */
import { type ProviderAnswer, type ProviderRequest, sendJson } from "./provider.ts";

export type Trouble =
  | { readonly kind: "error"; readonly status: number }
  /** The connection breaks after the first text. */
  | { readonly kind: "cut" }
  /** The stream has an error event after the first text. */
  | { readonly kind: "late" };

const GAVE_UP = "The provider gave up";

type ProviderKind = "chat" | "responses" | "messages" | "gemini";

export function providerOfAll(trouble: Trouble): ProviderAnswer {
  return (request, response) => {
    const kind = kindOf(request);
    if (trouble.kind === "error") {
      sendJson(response, trouble.status, errorBody(kind, trouble.status));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const text = beginning(kind) + (trouble.kind === "late" ? lateError(kind) : "");
    response.write(text, () => {
      if (trouble.kind === "late") response.end();
      // The gateway has read the first part when the connection breaks.
      else setTimeout(() => response.destroy(), 20);
    });
  };
}

function kindOf({ url }: ProviderRequest): ProviderKind {
  if (url.includes("/messages")) return "messages";
  if (url.includes("/responses")) return "responses";
  return url.includes("enerateContent") ? "gemini" : "chat";
}

function errorBody(kind: ProviderKind, status: number): object {
  const message = `The provider says ${status}`;
  if (kind === "messages") return { type: "error", error: { type: anthropicType(status), message } };
  if (kind === "gemini") return { error: { code: status, message, status: "INTERNAL" } };
  return { error: { message, type: "server_error", param: null, code: null } };
}

function anthropicType(status: number): string {
  if (status === 429) return "rate_limit_error";
  return status === 400 ? "invalid_request_error" : "api_error";
}

const event = (type: string, rest: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`;

function beginning(kind: ProviderKind): string {
  switch (kind) {
    case "chat":
      return data({
        id: "c",
        object: "chat.completion.chunk",
        created: 1,
        model: "m",
        choices: [{ index: 0, delta: { role: "assistant", content: "He" }, finish_reason: null }],
      });
    case "gemini":
      return data({ candidates: [{ index: 0, content: { role: "model", parts: [{ text: "He" }] } }] });
    case "messages":
      return (
        event("message_start", {
          message: {
            id: "m",
            type: "message",
            role: "assistant",
            model: "c",
            content: [],
            stop_reason: null,
            stop_sequence: null,
            usage: { input_tokens: 1, output_tokens: 1 },
          },
        }) +
        event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }) +
        event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "He" } })
      );
    case "responses":
      return event("response.created", {
        sequence_number: 0,
        response: {
          id: "r",
          object: "response",
          created_at: 1,
          model: "m",
          status: "in_progress",
          output: [],
        },
      });
  }
}

function lateError(kind: ProviderKind): string {
  if (kind === "messages") {
    return event("error", { error: { type: "overloaded_error", message: GAVE_UP } });
  }
  if (kind === "gemini") return data({ error: { code: 503, message: GAVE_UP, status: "UNAVAILABLE" } });
  if (kind === "responses") {
    const error = { message: GAVE_UP, type: "server_error", param: null, code: "server_error" };
    return event("error", { sequence_number: 1, ...error, type: "error", error });
  }
  return data({ error: { message: GAVE_UP, type: "server_error", param: null, code: null } });
}
