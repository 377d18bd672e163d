/** What the provider of the gateway benchmark answers: a chat completion of about 1.5 KB, and a stream of 50 events. */

/** Milliseconds between two events of a stream, on average; a model makes 100 tokens a second. */
export const MEAN_PAUSE_MS = 10;

const EVENTS = 50;
const COMPLETION = JSON.stringify({
  id: "chatcmpl-bench",
  object: "chat.completion",
  created: 1_700_000_000,
  model: "gpt-4o-mini",
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: "The answer to the question. ".repeat(40) },
      logprobs: null,
      finish_reason: "stop",
    },
  ],
  usage: { prompt_tokens: 210, completion_tokens: 240, total_tokens: 450 },
});

const event = (choices: object[], rest: object = {}) =>
  `data: ${JSON.stringify({ id: "chatcmpl-bench", object: "chat.completion.chunk", created: 1_700_000_000, model: "gpt-4o-mini", choices, ...rest })}\n\n`;
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

export const JSON_RESPONSE = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${COMPLETION.length}\r\n\r\n${COMPLETION}`,
);

/** The head, 50 events, the usage, the end of the events, and the last chunk; each is one write. */
export const STREAM_PARTS: readonly Buffer[] = [
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
  ...Array.from({ length: EVENTS }, () =>
    chunk(event([{ index: 0, delta: { content: "word " }, finish_reason: null }])),
  ),
  chunk(event([], { usage: { prompt_tokens: 210, completion_tokens: 50, total_tokens: 260 } })),
  `${chunk("data: [DONE]\n\n")}0\r\n\r\n`,
].map((part) => Buffer.from(part));
