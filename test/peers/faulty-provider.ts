/**
 * A provider of chat completions that fails in one way per model: the name of the model selects the fault, as a test with ordinary settings can
 * choose it. `ok` always answers.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { ServerResponse } from "node:http";
import { type ProviderPeer, type ProviderRequest, sendJson, startProvider } from "./provider.ts";

/** Sixty words. */
export const ANSWER = Array.from({ length: 60 }, (_, i) => `word${i}`).join(" ");
const WORDS = ANSWER.split(" ");

export interface SeenAttempt {
  readonly model: string;
  /** `performance.now()` */
  readonly at: number;
  readonly lastRole: string;
}

export interface FaultyProvider {
  readonly url: string;
  readonly seen: SeenAttempt[];
  /** The model `flap` fails while this is true. */
  isDown: boolean;
  /** Forgets the attempts, so that a fault of the first one comes again. */
  reset(): void;
  close(): Promise<void>;
}

interface ChatBody {
  readonly model: string;
  readonly stream?: boolean;
  readonly messages: readonly { readonly role: string }[];
}

interface Attempt {
  readonly body: ChatBody;
  /** 1 for the first request with this model. */
  readonly number: number;
  readonly response: ServerResponse;
  readonly provider: FaultyProvider;
}

const error = (message: string, code: string | null) => ({ error: { message, type: "error", code } });

/** Returns without a response to let the model answer. */
type Fault = (attempt: Attempt) => boolean | void;

const refuse = (status: number, code: string | null, headers: Record<string, string> = {}): Fault =>
  function refused({ response }) {
    sendJson(response, status, error(`refused with ${status}`, code), headers);
    return true;
  };

const once =
  (fault: Fault): Fault =>
  (attempt) =>
    attempt.number === 1 ? fault(attempt) : false;

const FAULTS: Readonly<Record<string, Fault>> = {
  "limit-once": once(refuse(429, "rate_limit_exceeded", { "retry-after": "1" })),
  "limit-long": refuse(429, "rate_limit_exceeded", { "retry-after": "120" }),
  limit: refuse(429, "rate_limit_exceeded"),
  "error-once": once(refuse(500, null)),
  overloaded: refuse(503, "overloaded"),
  "reset-once": once(({ response }) => {
    response.socket?.resetAndDestroy();
    return true;
  }),
  silent: () => true,
  "context-length": refuse(400, "context_length_exceeded"),
  "content-filter": refuse(400, "content_policy_violation"),
  "no-prefill": (attempt) =>
    attempt.body.messages.at(-1)?.role === "assistant" ? refuse(400, "invalid_prefill")(attempt) : false,
  flap: (attempt) => (attempt.provider.isDown ? refuse(503, "overloaded")(attempt) : false),
};

export async function startFaultyProvider(): Promise<FaultyProvider> {
  const counts = new Map<string, number>();
  const peer: ProviderPeer = await startProvider((request, response) => answer(request, response));
  const provider: FaultyProvider = {
    url: peer.url,
    seen: [],
    isDown: false,
    reset() {
      provider.seen.length = 0;
      provider.isDown = false;
      counts.clear();
    },
    close: () => peer.close(),
  };
  async function answer(request: ProviderRequest, response: ServerResponse): Promise<void> {
    const body = JSON.parse(request.body) as ChatBody;
    const number = (counts.get(body.model) ?? 0) + 1;
    counts.set(body.model, number);
    provider.seen.push({
      model: body.model,
      at: performance.now(),
      lastRole: body.messages.at(-1)?.role ?? "",
    });
    if (FAULTS[body.model]?.({ body, number, response, provider }) === true) return;
    if (body.stream === true) await stream(body.model, response);
    else sendJson(response, 200, completion(body.model));
  }
  return provider;
}

function completion(model: string): object {
  return {
    id: "chatcmpl-1",
    object: "chat.completion",
    model,
    choices: [{ index: 0, message: { role: "assistant", content: ANSWER }, finish_reason: "stop" }],
    usage: { prompt_tokens: 9, completion_tokens: 60, total_tokens: 69 },
  };
}

const chunk = (model: string, delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", model, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

async function stream(model: string, response: ServerResponse): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  response.flushHeaders();
  if (model === "error-event") {
    response.end(`data: ${JSON.stringify(error("overloaded", "overloaded"))}\n\n`);
    return;
  }
  if (model === "empty") {
    response.end("data: [DONE]\n\n");
    return;
  }
  response.write(chunk(model, { role: "assistant", content: "" }));
  if (model === "slow-first-token") await sleep(8000, undefined, { ref: false });
  for (const [i, word] of WORDS.entries()) {
    if (response.destroyed) return;
    if (i === 40 && model === "cut") {
      // After the bytes have left, so that the reader has seen the first part.
      await sleep(20);
      response.destroy();
      return;
    }
    if (i === 20 && model === "stall") return;
    if (i === 10 && model === "malformed")
      response.write('data: {"id": "chatcmpl-1", "choices": [{"delta": \n\n');
    response.write(chunk(model, { content: i === 0 ? word : ` ${word}` }));
    await new Promise((resolve) => setImmediate(resolve));
  }
  response.write(chunk(model, {}, "stop"));
  response.write(
    `data: ${JSON.stringify({ id: "chatcmpl-1", model, choices: [], usage: { prompt_tokens: 9, completion_tokens: 60, total_tokens: 69 } })}\n\n`,
  );
  response.end(model === "no-done" ? "" : "data: [DONE]\n\n");
}
