/**
 * Plays a model, so that the example runs without a key: it understands "buy …" and "remove …", uses the tools for them, and streams its answers
 * word by word, in the format of OpenAI's chat completions.
 */
import { createServer, type Server, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

interface ChatRequest {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
}

export function startModel(): Server {
  return createServer((request, response) => {
    void text(request).then((body) => answer((JSON.parse(body) as ChatRequest).messages, response));
  }).listen(0, "127.0.0.1");
}

async function answer(messages: ChatRequest["messages"], response: ServerResponse): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (delta: object, finish: string | null = null) =>
    response.write(
      `data: ${JSON.stringify({ id: "demo", model: "shopping", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
    );
  const last = messages.at(-1);
  const [, verb = "", item = ""] = /\b(buy|remove)\s+(.+?)[.!?]*$/i.exec(last?.content ?? "") ?? [];
  if (last?.role === "user" && item !== "") {
    const name = verb.toLowerCase() === "buy" ? "addItem" : "removeItem";
    const call = { name, arguments: JSON.stringify({ item }) };
    send({ tool_calls: [{ index: 0, id: `call-${messages.length}`, type: "function", function: call }] });
    send({}, "tool_calls");
  } else {
    for (const word of reply(last).split(/(?<= )/)) {
      send({ content: word });
      await sleep(40);
    }
    send({}, "stop");
  }
  const usage = { prompt_tokens: 40, completion_tokens: 12, total_tokens: 52 };
  response.end(`data: ${JSON.stringify({ id: "demo", choices: [], usage })}\n\ndata: [DONE]\n\n`);
}

function reply(last: ChatRequest["messages"][number] | undefined): string {
  if (last?.role !== "tool") return 'I keep your shopping list. Say "buy milk" or "remove milk".';
  const { list } = JSON.parse(last.content) as { list: readonly string[] };
  return list.length === 0
    ? "Done. The list is empty now."
    : `Done. ${list.length} on the list: ${list.join(", ")}.`;
}
