/**
 * The built-in provider `echo`: answers OpenAI-compatible chat completions inside the process with the last user message. The same
 * request always gives the same response, so a first call and test suites need no key and no network.
 *
 * One token is four characters, rounded up. A stream always ends with a usage chunk, whether or not the request asks for one.
 */
import { createHash } from "node:crypto";
import {
  toOrigin,
  type UpstreamExchange,
  type UpstreamHandler,
  type UpstreamRequest,
} from "../../engines/relay/index.ts";
import { bearer, type Provider } from "./provider.ts";
import { CHAT_API, NO_FURTHER, type ProviderApis } from "./provider-api.ts";

interface ChatRequest {
  readonly model?: unknown;
  readonly messages?: unknown;
  readonly stream?: unknown;
  readonly max_tokens?: unknown;
  readonly max_completion_tokens?: unknown;
}

interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
}

/** Required by the interface; no request is sent there. */
const UNUSED_ORIGIN = toOrigin(new URL("http://echo.invalid"), false);
const ECHO_APIS: ProviderApis = {
  calls: [CHAT_API],
  embeddings: null,
  countTokens: null,
  further: NO_FURTHER,
};
const CHARACTERS_PER_TOKEN = 4;
const MODELS = ["echo"];
/** Longer answers are streamed in equal parts. */
const MAX_WORDS_LENGTH = 16 * 1024;
const MAX_EVENTS = 1000;

export function createEchoProvider(): Provider {
  return {
    slug: "echo",
    credentialHeaders: ["authorization"],
    toCredential: bearer,
    acceptsKeyInQuery: false,
    extraHeaders: [],
    locate: (path) => ({ origin: UNUSED_ORIGIN, path: `/${path.startsWith("v1/") ? path.slice(3) : path}` }),
    locateAtHost: (path) => ({ origin: UNUSED_ORIGIN, path }),
    modelInPath: () => null,
    apisFor: () => ECHO_APIS,
    isHostOfCaller: false,
    answer: (request, handler) => new EchoExchange(request, handler),
  };
}

interface LocalResponse {
  readonly status: number;
  readonly contentType: string;
  readonly chunks: readonly Buffer[];
}

/** Delivers the answer as a connection does: asynchronously, in chunks, and paused while the reader is. */
class EchoExchange implements UpstreamExchange {
  readonly #handler: UpstreamHandler;
  #chunks: readonly Buffer[] = [];
  #next = 0;
  #isPaused = false;
  #isEnded = false;

  constructor(request: UpstreamRequest, handler: UpstreamHandler) {
    this.#handler = handler;
    setImmediate(() => this.#start(request));
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    setImmediate(() => this.#deliver());
  }

  abort(): void {
    this.#isEnded = true;
  }

  #start(request: UpstreamRequest): void {
    if (this.#isEnded) return;
    const response = respond(request);
    this.#chunks = response.chunks;
    const { status, contentType, chunks } = response;
    const rawHeaders = ["content-type", contentType];
    if (chunks.length === 1) rawHeaders.push("content-length", String(chunks[0]?.length ?? 0));
    this.#handler.onHead({ status, statusText: "", rawHeaders, contentType });
    this.#deliver();
  }

  #deliver(): void {
    while (!this.#isPaused && !this.#isEnded) {
      const chunk = this.#chunks[this.#next++];
      if (chunk === undefined) return;
      this.#isEnded = this.#next === this.#chunks.length;
      this.#handler.onBody(chunk, this.#isEnded);
    }
    if (!this.#isEnded) this.#handler.onReadEnd();
  }
}

function respond(request: UpstreamRequest): LocalResponse {
  const path = request.target.split("?", 1)[0];
  if (path === "/models" && request.method === "GET") {
    return json(200, {
      object: "list",
      data: MODELS.map((id) => ({ id, object: "model", created: 0, owned_by: "signalbox" })),
    });
  }
  if (path !== "/chat/completions" || request.method !== "POST") {
    return errorResponse(404, `echo does not serve ${request.method} ${path}`, "not_found");
  }
  const body = request.body.kind === "whole" ? parseChat(request.body.bytes) : null;
  if (body === null) return errorResponse(400, "The body is not a JSON object", "invalid_body");
  if (typeof body.model !== "string") return errorResponse(400, "model must be a string", "invalid_model");
  if (!Array.isArray(body.messages) || body.messages.length === 0) {
    return errorResponse(400, "messages must be an array that is not empty", "invalid_messages");
  }
  return complete(body.model, body.messages, body);
}

function complete(model: string, messages: readonly unknown[], body: ChatRequest): LocalResponse {
  const texts = messages.map(textOf);
  const lastUser = messages.findLastIndex((message) => roleOf(message) === "user");
  const limit = [body.max_completion_tokens, body.max_tokens].find((value) => typeof value === "number");
  const whole = texts[lastUser === -1 ? texts.length - 1 : lastUser] ?? "";
  const answer = limit === undefined ? whole : whole.slice(0, limit * CHARACTERS_PER_TOKEN);
  const promptTokens = texts.reduce((sum, text) => sum + tokensOf(text), 0);
  const completionTokens = tokensOf(answer);
  const usage: Usage = {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
  const id = `chatcmpl-${createHash("sha256")
    .update(JSON.stringify([model, texts]))
    .digest("hex")
    .slice(0, 24)}`;
  const finishReason = answer.length < whole.length ? "length" : "stop";
  const base = { id, created: 0, model };
  if (body.stream === true) return stream(base, answer, finishReason, usage);
  return json(200, {
    ...base,
    object: "chat.completion",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: answer },
        logprobs: null,
        finish_reason: finishReason,
      },
    ],
    usage,
  });
}

function stream(base: object, answer: string, finishReason: string, usage: Usage): LocalResponse {
  const event = (choices: readonly object[], rest: object = {}) =>
    Buffer.from(
      `data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", choices, ...rest })}\n\n`,
    );
  const words = piecesOf(answer);
  return {
    status: 200,
    contentType: "text/event-stream; charset=utf-8",
    chunks: [
      event([{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }]),
      ...words.map((word) => event([{ index: 0, delta: { content: word }, finish_reason: null }])),
      event([{ index: 0, delta: {}, finish_reason: finishReason }]),
      event([], { usage }),
      Buffer.from("data: [DONE]\n\n"),
    ],
  };
}

/** The words of the answer; of a long one, `MAX_EVENTS` parts. */
function piecesOf(answer: string): string[] {
  if (answer.length > MAX_WORDS_LENGTH) {
    const length = Math.ceil(answer.length / MAX_EVENTS);
    return Array.from({ length: Math.ceil(answer.length / length) }, (_, i) =>
      answer.slice(i * length, (i + 1) * length),
    );
  }
  return answer.match(/\S*\s*/g)?.filter((word) => word !== "") ?? [];
}

function parseChat(bytes: Buffer): ChatRequest | null {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return typeof value === "object" && value !== null ? value : null;
  } catch {
    return null;
  }
}

function roleOf(message: unknown): unknown {
  return typeof message === "object" && message !== null && "role" in message ? message.role : undefined;
}

/** The text of a message; its content is a string or a list of parts. */
function textOf(message: unknown): string {
  const content =
    typeof message === "object" && message !== null && "content" in message ? message.content : undefined;
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((part: unknown) =>
      typeof part === "object" && part !== null && "text" in part && typeof part.text === "string"
        ? part.text
        : "",
    )
    .join("");
}

function tokensOf(text: string): number {
  return Math.ceil(text.length / CHARACTERS_PER_TOKEN);
}

function json(status: number, value: object): LocalResponse {
  return { status, contentType: "application/json", chunks: [Buffer.from(JSON.stringify(value))] };
}

function errorResponse(status: number, message: string, code: string): LocalResponse {
  return json(status, { error: { message, type: "invalid_request_error", param: null, code } });
}
