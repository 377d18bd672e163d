/** The parts of OpenAI's API that clients usually call: chat, responses, embeddings, models, and errors. */
import { type ProviderAnswer, sendEvents, sendJson } from "./provider.ts";

const USAGE = {
  prompt_tokens: 12,
  completion_tokens: 7,
  total_tokens: 19,
  prompt_tokens_details: { cached_tokens: 4, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 3, audio_tokens: 0 },
};

export const OPENAI_KEY = "sk-provider-key";

export const openAi: ProviderAnswer = async (request, response) => {
  if (request.headers.authorization !== `Bearer ${OPENAI_KEY}`) {
    sendJson(
      response,
      401,
      {
        error: {
          message: "Incorrect API key provided.",
          type: "invalid_request_error",
          param: null,
          code: "invalid_api_key",
        },
      },
      { "x-request-id": "req_from_openai" },
    );
    return;
  }
  const path = request.url.split("?", 1)[0];
  if (path === "/v1/models") {
    sendJson(response, 200, {
      object: "list",
      data: [{ id: "gpt-4o-mini", object: "model", created: 1_700_000_000, owned_by: "openai" }],
    });
    return;
  }
  const body = JSON.parse(request.body) as {
    model: string;
    stream?: boolean;
    stream_options?: { include_usage?: boolean };
  };
  switch (path) {
    case "/v1/chat/completions":
      await (body.stream === true
        ? sendEvents(response, chatEvents(body.model, body.stream_options?.include_usage === true))
        : sendJson(response, 200, chat(body.model), { "x-request-id": "req_from_openai" }));
      return;
    case "/v1/responses":
      await (body.stream === true
        ? sendEvents(response, responseEvents(body.model))
        : sendJson(response, 200, modelResponse(body.model, "completed")));
      return;
    case "/v1/embeddings":
      sendJson(response, 200, {
        object: "list",
        model: body.model,
        data: [{ object: "embedding", index: 0, embedding: [0.25, -0.5] }],
        usage: { prompt_tokens: 5, total_tokens: 5 },
      });
      return;
    default:
      sendJson(response, 404, {
        error: {
          message: `Unknown request URL: ${path}`,
          type: "invalid_request_error",
          code: "unknown_url",
        },
      });
  }
};

function chat(model: string): object {
  return {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1_700_000_000,
    model,
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: "Hello there", refusal: null },
        logprobs: null,
        finish_reason: "stop",
      },
    ],
    usage: USAGE,
  };
}

function chatEvents(model: string, withUsage: boolean): string[] {
  const chunk = (choices: object[], usage?: object) =>
    `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1_700_000_000, model, choices, ...(usage === undefined ? {} : { usage }) })}\n\n`;
  return [
    chunk([{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }]),
    chunk([{ index: 0, delta: { content: "Hello" }, finish_reason: null }]),
    chunk([{ index: 0, delta: { content: " there" }, finish_reason: null }]),
    chunk([{ index: 0, delta: {}, finish_reason: "stop" }]),
    ...(withUsage ? [chunk([], USAGE)] : []),
    "data: [DONE]\n\n",
  ];
}

function modelResponse(model: string, status: string): object {
  return {
    id: "resp_1",
    object: "response",
    created_at: 1_700_000_000,
    status,
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    model,
    output:
      status === "completed"
        ? [
            {
              type: "message",
              id: "msg_1",
              status: "completed",
              role: "assistant",
              content: [{ type: "output_text", text: "Hello there", annotations: [] }],
            },
          ]
        : [],
    parallel_tool_calls: true,
    temperature: 1,
    tool_choice: "auto",
    tools: [],
    top_p: 1,
    usage:
      status === "completed"
        ? {
            input_tokens: 12,
            input_tokens_details: { cached_tokens: 4 },
            output_tokens: 7,
            output_tokens_details: { reasoning_tokens: 3 },
            total_tokens: 19,
          }
        : null,
  };
}

function responseEvents(model: string): string[] {
  let sequence = 0;
  const event = (type: string, rest: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...rest })}\n\n`;
  const place = { item_id: "msg_1", output_index: 0, content_index: 0 };
  return [
    event("response.created", { response: modelResponse(model, "in_progress") }),
    event("response.output_item.added", {
      output_index: 0,
      item: { id: "msg_1", type: "message", status: "in_progress", role: "assistant", content: [] },
    }),
    event("response.content_part.added", {
      ...place,
      part: { type: "output_text", text: "", annotations: [] },
    }),
    event("response.output_text.delta", { ...place, delta: "Hello there", logprobs: [] }),
    event("response.output_text.done", { ...place, text: "Hello there", logprobs: [] }),
    event("response.content_part.done", {
      ...place,
      part: { type: "output_text", text: "Hello there", annotations: [] },
    }),
    event("response.output_item.done", {
      output_index: 0,
      item: {
        id: "msg_1",
        type: "message",
        status: "completed",
        role: "assistant",
        content: [{ type: "output_text", text: "Hello there", annotations: [] }],
      },
    }),
    event("response.completed", { response: modelResponse(model, "completed") }),
  ];
}
