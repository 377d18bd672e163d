/** A model that answers as its last message says: it counts, pausing where the test wants, or calls a tool and repeats the result. */
import type { ServerResponse } from "node:http";
import { type ProviderPeer, startProvider } from "./provider.ts";

const WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];

export interface ChatModel extends ProviderPeer {
  /** The next count stops after three words until it is released. */
  pause(): () => void;
}

interface Message {
  readonly role: string;
  readonly content: string | readonly { readonly text?: string }[] | null;
}

export async function startChatModel(): Promise<ChatModel> {
  let gate: Promise<void> | null = null;
  const peer = await startProvider(async ({ body }, response) => {
    const { messages } = JSON.parse(body) as { messages: readonly Message[] };
    const last = messages.at(-1);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const text = textOf(last);
    const call = /^call (\w+) (.*)$/.exec(text);
    if (last?.role === "tool") await speak(response, ["The", "tool", "said:", text]);
    else if (call?.[1] !== undefined) callTool(response, call[1], call[2] ?? "{}");
    else {
      const pausing = gate;
      gate = null;
      if (last?.role === "assistant") await speak(response, ["and", "so", "on"]);
      else {
        await speak(response, WORDS.slice(0, 3));
        await pausing;
        await speak(response, WORDS.slice(3));
      }
    }
    send(response, {}, last?.role !== "tool" && call !== null ? "tool_calls" : "stop");
    response.end("data: [DONE]\n\n");
  });
  return Object.assign(peer, {
    pause() {
      const { promise, resolve } = Promise.withResolvers<void>();
      gate = promise;
      return resolve;
    },
  });
}

function textOf(message: Message | undefined): string {
  const content = message?.content ?? "";
  return typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("");
}

async function speak(response: ServerResponse, words: readonly string[]): Promise<void> {
  for (const word of words) {
    send(response, { content: `${word} ` });
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function callTool(response: ServerResponse, name: string, args: string): void {
  const id = `call_${Math.random().toString(36).slice(2)}`;
  send(response, { tool_calls: [{ index: 0, id, type: "function", function: { name, arguments: args } }] });
}

function send(response: ServerResponse, delta: object, reason: string | null = null): void {
  const choice = { index: 0, delta, finish_reason: reason };
  response.write(
    `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [choice] })}\n\n`,
  );
}
