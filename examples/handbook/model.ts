/**
 * Plays a model, so that the example runs without a key: it quotes the first passage of the prompt, word by word, in the format of OpenAI's chat
 * completions.
 */
import { createServer, type Server, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

export function startModel(): Server {
  return createServer((request, response) => {
    void text(request).then((body) => answer(body, response));
  }).listen(0, "127.0.0.1");
}

async function answer(body: string, response: ServerResponse): Promise<void> {
  const { messages } = JSON.parse(body) as { messages: readonly { readonly content: string }[] };
  const [, passage = ""] = /^\[1\] .*?: ([^]*?)(?:\n\n|$)/m.exec(messages.at(-1)?.content ?? "") ?? [];
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (delta: object, finish: string | null = null) =>
    response.write(
      `data: ${JSON.stringify({ id: "demo", model: "quote", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
    );
  for (const word of `${passage} [1]`.split(/(?<= )/)) {
    send({ content: word });
    await sleep(20);
  }
  send({}, "stop");
  const usage = { prompt_tokens: 200, completion_tokens: 30, total_tokens: 230 };
  response.end(`data: ${JSON.stringify({ id: "demo", choices: [], usage })}\n\ndata: [DONE]\n\n`);
}
