/** Anthropic's Messages API: one message, one stream, and its error shape. */
import { type ProviderAnswer, sendEvents, sendJson } from "./provider.ts";

export const ANTHROPIC_KEY = "sk-ant-provider-key";

export const anthropic: ProviderAnswer = async (request, response) => {
  // The API accepts a key in either header.
  const key = request.headers["x-api-key"] ?? request.headers.authorization?.replace(/^Bearer /, "");
  if (key !== ANTHROPIC_KEY) {
    sendJson(response, 401, {
      type: "error",
      error: { type: "authentication_error", message: "invalid x-api-key" },
      request_id: "req_from_anthropic",
    });
    return;
  }
  if (request.url !== "/v1/messages" || request.headers["anthropic-version"] === undefined) {
    sendJson(response, 404, { type: "error", error: { type: "not_found_error", message: "Not found" } });
    return;
  }
  const { model, stream } = JSON.parse(request.body) as { model: string; stream?: boolean };
  if (stream === true) {
    await sendEvents(response, events(model));
    return;
  }
  sendJson(
    response,
    200,
    {
      ...message(model),
      content: [{ type: "text", text: "Hello there" }],
      stop_reason: "end_turn",
      usage: {
        input_tokens: 20,
        cache_creation_input_tokens: 3,
        cache_read_input_tokens: 2,
        output_tokens: 6,
      },
    },
    { "request-id": "req_from_anthropic" },
  );
};

function message(model: string): object {
  return {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 20, cache_creation_input_tokens: 3, cache_read_input_tokens: 2, output_tokens: 1 },
  };
}

function events(model: string): string[] {
  const event = (type: string, rest: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
  return [
    event("message_start", { message: message(model) }),
    event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    event("ping", {}),
    event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "Hello" } }),
    event("content_block_delta", { index: 0, delta: { type: "text_delta", text: " there" } }),
    event("content_block_stop", { index: 0 }),
    event("message_delta", {
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { output_tokens: 6 },
    }),
    event("message_stop", {}),
  ];
}
