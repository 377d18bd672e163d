/**
 * A provider that answers at once: on plain sockets, with a fixed chat completion of about 1.5 KB, or a stream of 50 events when the
 * request asks for one. It costs so little that whoever stands before it is what is measured. Prints its address as one JSON line.
 *
 * Events are written one by one with a turn of the event loop between them, as a model makes them. The whole stream in one write, which is
 * the least work for whoever reads it, is for requests that say so (`"user":"burst"`).
 */
import { createServer, type Socket } from "node:net";
import type { AddressInfo } from "node:net";

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
const JSON_RESPONSE = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${COMPLETION.length}\r\n\r\n${COMPLETION}`,
);

const EVENTS = 50;
const event = (choices: object[], rest: object = {}) =>
  `data: ${JSON.stringify({ id: "chatcmpl-bench", object: "chat.completion.chunk", created: 1_700_000_000, model: "gpt-4o-mini", choices, ...rest })}\n\n`;
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
const STREAM_HEAD = Buffer.from(
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
);
const STREAM_PARTS = [
  ...Array.from({ length: EVENTS }, () =>
    chunk(event([{ index: 0, delta: { content: "word " }, finish_reason: null }])),
  ),
  chunk(event([], { usage: { prompt_tokens: 210, completion_tokens: 50, total_tokens: 260 } })),
  chunk("data: [DONE]\n\n"),
  "0\r\n\r\n",
].map((part) => Buffer.from(part));
const STREAM_BODY = Buffer.concat(STREAM_PARTS);

const HEAD_END = Buffer.from("\r\n\r\n");
const WANTS_STREAM = Buffer.from('"stream":true');
const WANTS_BURST = Buffer.from('"user":"burst"');

/** Ends early when the reader leaves. */
function stream(socket: Socket, next = 0): void {
  const part = STREAM_PARTS[next];
  if (part === undefined || !socket.writable) return;
  socket.write(part);
  setImmediate(stream, socket, next + 1);
}

function serve(socket: Socket): void {
  let pending: Buffer = Buffer.alloc(0);
  socket.setNoDelay(true);
  socket.on("error", () => socket.destroy());
  socket.on("data", (data: Buffer) => {
    pending = pending.length === 0 ? data : Buffer.concat([pending, data]);
    for (;;) {
      const headEnd = pending.indexOf(HEAD_END);
      if (headEnd === -1) return;
      const length = /\r\ncontent-length: *(\d+)/i.exec(pending.toString("latin1", 0, headEnd + 2))?.[1];
      const end = headEnd + 4 + Number(length ?? 0);
      if (pending.length < end) return;
      const request = pending.subarray(headEnd, end);
      pending = pending.subarray(end);
      if (request.includes(WANTS_STREAM)) {
        socket.write(STREAM_HEAD);
        if (request.includes(WANTS_BURST)) socket.write(STREAM_BODY);
        else stream(socket);
      } else {
        socket.write(JSON_RESPONSE);
      }
    }
  });
}

const server = createServer(serve);
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ port })}\n`);
});
process.once("SIGTERM", () => process.exit(0));
