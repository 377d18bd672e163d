/**
 * A model that follows a script, behind a server that speaks the dialect of a real provider. The script sees what a model would see: the
 * tools, the results of earlier calls and the texts. Its next answer is streamed, or sent whole if the client asked for that.
 *
 * It is as strict as the providers are: a result without its call, a call without its result, and a call of Gemini that comes back without
 * its signature get 400.
 */
import type { ServerResponse } from "node:http";
import { type ProviderPeer, sendJson, startProvider } from "./provider.ts";

export type ModelDialect = "chat" | "messages" | "gemini";

export interface ToolUse {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

export interface Conversation {
  /** The model that the provider was asked for. */
  readonly model: string;
  readonly tools: readonly string[];
  /** Results of tools, in the order of their calls. */
  readonly results: readonly string[];
  /** Whatever else the request says, the system prompt included. */
  readonly text: string;
}

export interface ModelAnswer {
  readonly text: string;
  readonly calls?: readonly ToolUse[];
}

export interface ScriptedModel extends ProviderPeer {
  script: (conversation: Conversation) => ModelAnswer;
  /** A stream stops after its text until this is resolved. */
  afterText: (text: string) => Promise<void>;
  /** What a provider would have refused. */
  readonly complaints: string[];
}

/** What each answer of the model costs. */
export const INPUT_TOKENS = 1200;
export const OUTPUT_TOKENS = 34;

const SIGNATURE = "c2lnbmVkIGJ5IGdlbWluaQ==";
/** The second is Gemini's own word for a call whose signature was lost, by a client that does not keep it. */
const TAKEN_SIGNATURES: readonly unknown[] = [SIGNATURE, "skip_thought_signature_validator"];

type Fields = Readonly<Record<string, unknown>>;
interface Request {
  readonly url: string;
  readonly body: Fields;
}

export async function startScriptedModel(dialect: ModelDialect): Promise<ScriptedModel> {
  const { read, isStream, whole, stream } = DIALECTS[dialect];
  let ids = 0;
  const peer = await startProvider(async ({ url, body }, response) => {
    const request: Request = { url, body: JSON.parse(body) as Fields };
    let answer: ModelAnswer;
    try {
      answer = model.script(read(request));
    } catch (error) {
      model.complaints.push(String(error));
      sendJson(response, 400, {
        type: "error",
        error: { type: "invalid_request_error", message: String(error) },
      });
      return;
    }
    const calls = (answer.calls ?? []).map((call) => ({ ...call, id: `toolu_${dialect}_${++ids}` }));
    if (!isStream(request)) {
      sendJson(response, 200, whole(answer.text, calls));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    const [begin, end] = stream(answer.text, calls);
    await writeEach(response, begin);
    await model.afterText(answer.text);
    await writeEach(response, end);
    response.end();
  });
  const model: ScriptedModel = Object.assign(peer, {
    script: () => ({ text: "Hello." }),
    afterText: () => Promise.resolve(),
    complaints: [],
  });
  return model;
}

async function writeEach(response: ServerResponse, events: readonly string[]): Promise<void> {
  for (const event of events) {
    response.write(event);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

interface NumberedUse extends ToolUse {
  readonly id: string;
}

interface Dialect {
  read(request: Request): Conversation;
  isStream(request: Request): boolean;
  whole(text: string, calls: readonly NumberedUse[]): object;
  /** The events until the end of the text, and the rest. */
  stream(text: string, calls: readonly NumberedUse[]): readonly [readonly string[], readonly string[]];
}

/** Pairs results with their calls, which clients answer in any order. */
class Results {
  readonly #calls: string[] = [];
  readonly #results: string[] = [];

  call(id: string): void {
    if (this.#calls.includes(id)) throw new Error(`two calls have the id ${id}`);
    this.#calls.push(id);
  }

  answer(id: string, text: string): void {
    const at = this.#calls.indexOf(id);
    if (at === -1) throw new Error(`no call for the result ${id}`);
    if (this.#results[at] !== undefined) throw new Error(`a second result for the call ${id}`);
    this.#results[at] = text;
  }

  /** Before the next turn of the model, all calls must have been answered. */
  check(): void {
    const open = this.#calls.filter((_, at) => this.#results[at] === undefined);
    if (open.length > 0) throw new Error(`no result for the calls ${open.join(", ")}`);
  }

  inOrder(): readonly string[] {
    this.check();
    return this.#results;
  }
}

const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
const event = (type: string, rest: object = {}) => `event: ${type}\n${data({ type, ...rest })}`;
/** Arguments arrive in pieces, cut where they happen to be. */
const pieces = (text: string) => [text.slice(0, 7), text.slice(7, 20), text.slice(20)];

const chat: Dialect = {
  read({ body }) {
    const messages = list(body["messages"]);
    const results = new Results();
    for (const message of messages) {
      if (message["role"] === "tool") {
        results.answer(String(message["tool_call_id"]), textOf(message["content"]));
        continue;
      }
      results.check();
      for (const call of list(message["tool_calls"])) {
        JSON.parse(String((call["function"] as Fields)["arguments"]));
        results.call(String(call["id"]));
      }
    }
    return {
      model: String(body["model"]),
      tools: list(body["tools"]).map((tool) => String((tool["function"] as Fields)["name"])),
      results: results.inOrder(),
      text: messages
        .filter(({ role }) => role !== "tool")
        .map(({ content }) => textOf(content))
        .join("\n"),
    };
  },
  isStream: ({ body }) => body["stream"] === true,
  whole: (text, calls) => ({
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "scripted",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: text,
          ...(calls.length === 0
            ? {}
            : {
                tool_calls: calls.map(({ id, name, input }) => ({
                  id,
                  type: "function",
                  function: { name, arguments: JSON.stringify(input) },
                })),
              }),
        },
        finish_reason: calls.length === 0 ? "stop" : "tool_calls",
      },
    ],
    usage: CHAT_USAGE,
  }),
  stream(text, calls) {
    const chunk = (delta: object, finish_reason: string | null = null) =>
      data({ ...CHUNK, choices: [{ index: 0, delta, finish_reason }] });
    return [
      [chunk({ role: "assistant", content: "" }), ...pieces(text).map((content) => chunk({ content }))],
      [
        ...calls.flatMap(({ id, name, input }, index) => [
          chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
          ...pieces(JSON.stringify(input)).map((text) =>
            chunk({ tool_calls: [{ index, function: { arguments: text } }] }),
          ),
        ]),
        chunk({}, calls.length === 0 ? "stop" : "tool_calls"),
        data({ ...CHUNK, choices: [], usage: CHAT_USAGE }),
        "data: [DONE]\n\n",
      ],
    ];
  },
};
const CHUNK = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "scripted" };
const CHAT_USAGE = {
  prompt_tokens: INPUT_TOKENS,
  completion_tokens: OUTPUT_TOKENS,
  total_tokens: INPUT_TOKENS + OUTPUT_TOKENS,
};

const messages: Dialect = {
  read({ body }) {
    const all = list(body["messages"]);
    const results = new Results();
    for (const { content } of all) {
      const blocks = typeof content === "string" ? [] : list(content);
      for (const { type, tool_use_id: id, content: result } of blocks)
        if (type === "tool_result") results.answer(String(id), textOf(result));
      results.check();
      for (const { type, id } of blocks) if (type === "tool_use") results.call(String(id));
    }
    return {
      model: String(body["model"]),
      tools: list(body["tools"]).map(({ name }) => String(name)),
      results: results.inOrder(),
      text: [textOf(body["system"]), ...all.map(({ content }) => textOf(content))].join("\n"),
    };
  },
  isStream: ({ body }) => body["stream"] === true,
  whole: (text, calls) => ({
    ...MESSAGE,
    content: [{ type: "text", text }, ...calls.map((call) => ({ type: "tool_use", ...call }))],
    stop_reason: calls.length === 0 ? "end_turn" : "tool_use",
    usage: { input_tokens: INPUT_TOKENS, output_tokens: OUTPUT_TOKENS },
  }),
  stream(text, calls) {
    const block = (index: number, content_block: object, deltas: readonly object[]) => [
      event("content_block_start", { index, content_block }),
      ...deltas.map((delta) => event("content_block_delta", { index, delta })),
      event("content_block_stop", { index }),
    ];
    const usage = { input_tokens: INPUT_TOKENS, output_tokens: 1 };
    return [
      [
        event("message_start", { message: { ...MESSAGE, content: [], stop_reason: null, usage } }),
        event("ping"),
        ...block(
          0,
          { type: "text", text: "" },
          pieces(text).map((text) => ({ type: "text_delta", text })),
        ),
      ],
      [
        ...calls.flatMap(({ id, name, input }, index) =>
          block(
            index + 1,
            { type: "tool_use", id, name, input: {} },
            pieces(JSON.stringify(input)).map((partial_json) => ({ type: "input_json_delta", partial_json })),
          ),
        ),
        event("message_delta", {
          delta: { stop_reason: calls.length === 0 ? "end_turn" : "tool_use", stop_sequence: null },
          usage: { output_tokens: OUTPUT_TOKENS },
        }),
        event("message_stop"),
      ],
    ];
  },
};
const MESSAGE = { id: "msg_1", type: "message", role: "assistant", model: "scripted", stop_sequence: null };

const gemini: Dialect = {
  read({ url, body }) {
    const contents = list(body["contents"]);
    const results = new Results();
    for (const { parts } of contents) {
      for (const { functionResponse } of list(parts)) {
        if (functionResponse === undefined) continue;
        const { id, response } = functionResponse as Fields;
        results.answer(String(id), JSON.stringify(response));
      }
      results.check();
      const calls = list(parts).filter((part) => "functionCall" in part);
      if (calls.length > 0 && !TAKEN_SIGNATURES.includes(calls[0]?.["thoughtSignature"]))
        throw new Error("the functionCall has no thoughtSignature");
      for (const { functionCall } of calls) results.call(String((functionCall as Fields)["id"]));
    }
    const system = body["systemInstruction"] as Fields | undefined;
    return {
      model: /models\/([^:]+)/.exec(url)?.[1] ?? "",
      tools: list(body["tools"]).flatMap((tool) =>
        list(tool["functionDeclarations"]).map(({ name }) => String(name)),
      ),
      results: results.inOrder(),
      text: [textOf(system?.["parts"]), ...contents.map(({ parts }) => textOf(parts))].join("\n"),
    };
  },
  isStream: ({ url }) => url.includes(":streamGenerateContent"),
  whole: (text, calls) => candidates([{ text }, ...geminiCalls(calls)], "STOP"),
  stream: (text, calls) => [
    pieces(text).map((text) => data(candidates([{ text }]))),
    [data(candidates(calls.length === 0 ? [{ text: "" }] : geminiCalls(calls), "STOP"))],
  ],
};

function candidates(parts: readonly object[], finishReason?: string): object {
  return {
    candidates: [
      {
        index: 0,
        content: { role: "model", parts },
        ...(finishReason === undefined ? {} : { finishReason }),
      },
    ],
    modelVersion: "scripted",
    usageMetadata: {
      promptTokenCount: INPUT_TOKENS,
      candidatesTokenCount: OUTPUT_TOKENS,
      totalTokenCount: INPUT_TOKENS + OUTPUT_TOKENS,
    },
  };
}

/** Only the first call of an answer is signed. */
function geminiCalls(calls: readonly NumberedUse[]): object[] {
  return calls.map(({ name, input }, index) => ({
    functionCall: { name, args: input },
    ...(index === 0 ? { thoughtSignature: SIGNATURE } : {}),
  }));
}

const DIALECTS: Readonly<Record<ModelDialect, Dialect>> = { chat, messages, gemini };

function list(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? (value as Fields[]) : [];
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return list(content)
    .map(({ text }) => (typeof text === "string" ? text : ""))
    .join("\n");
}
