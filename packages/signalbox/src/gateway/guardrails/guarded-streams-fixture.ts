/** Streams of all dialects, and what passes of them: shared by the tests that cut them in some places, and in all. */
import { type GuardrailRule, guardrailRules } from "../../accounts/index.ts";
import {
  type ResponseHead,
  type UpstreamFailure,
  type UpstreamHandler,
  type UpstreamRequest,
  writeAwsMessage,
} from "../../engines/relay/index.ts";
import type { CallShare } from "../step/call-share.ts";
import { Findings } from "./findings.ts";
import { searchRequest } from "./request-body.ts";
import { guardResponse } from "./response-guard.ts";
import { type PlaceRules, RuleSet } from "./rule-set.ts";
import { inOnePiece } from "./slices.ts";

export const parse = (...rules: readonly object[]): GuardrailRule[] => guardrailRules.parse(rules);
export const setOf = (rules: readonly GuardrailRule[]) =>
  new RuleSet(rules.map((rule) => ({ owner: "gateway" as const, rule })));
export const at = (set: RuleSet, place: "prompt" | "response"): PlaceRules => {
  const rules = set.at(place);
  if (rules === null) throw new Error("no rule looks there");
  return rules;
};

/** The request with masks. Throws `GuardrailBlock`. */
export const searchWhole = (rules: PlaceRules, findings: Findings, request: UpstreamRequest) =>
  inOnePiece(searchRequest(rules, findings, request));

/** One that has room for everything. */
export const ROOM: CallShare = { holdMemory: () => true, beginWork: (_, piece) => piece() };

interface StreamForm {
  readonly type: string;
  readonly events: (parts: readonly string[]) => Buffer;
  /** The parts are JSON inside of a string: the arguments of a tool. */
  readonly isArguments?: true;
}

const EVENTS = "text/event-stream";
/** Server-sent events without names: one for each part, and what follows them. */
const sse =
  (eventOf: (part: string) => object, ...end: readonly object[]) =>
  (parts: readonly string[]) =>
    Buffer.from(
      [...parts.map(eventOf), ...end].map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""),
    );
/** Amazon's binary stream. */
const aws =
  (type: string, eventOf: (part: string) => object, ...end: readonly object[]) =>
  (parts: readonly string[]) =>
    Buffer.concat(
      [...parts.map(eventOf), ...end].map((event) =>
        writeAwsMessage({ ":event-type": type, ":message-type": "event" }, JSON.stringify(event)),
      ),
    );
const inBase64 = (event: object) => ({
  p: "abcd",
  bytes: Buffer.from(JSON.stringify(event)).toString("base64"),
});

const chatDelta = (delta: object) => ({ choices: [{ index: 0, delta }] });
const chatEnd = { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
const messageDelta = (text: string) => ({
  type: "content_block_delta",
  index: 0,
  delta: { type: "text_delta", text },
});
const messageStart = {
  type: "content_block_start",
  index: 0,
  content_block: { type: "text", text: "" },
};
const messageStop = { type: "content_block_stop", index: 0 };
const PLACE = { item_id: "m", output_index: 0 };

export const STREAMS: Readonly<Record<string, StreamForm>> = {
  chat: {
    type: EVENTS,
    events: (parts) =>
      Buffer.concat([
        sse((content) => chatDelta({ content }), chatEnd)(parts),
        Buffer.from("data: [DONE]\n\n"),
      ]),
  },
  "two choices of chat": {
    type: EVENTS,
    events: (parts) =>
      Buffer.concat(
        parts.map((content) =>
          sse((index) => ({ choices: [{ index: Number(index), delta: { content } }] }))(["0", "1"]),
        ),
      ),
  },
  "arguments of a tool in a chat": {
    type: EVENTS,
    isArguments: true,
    events: sse((part) => chatDelta({ tool_calls: [{ index: 0, function: { arguments: part } }] }), chatEnd),
  },
  completions: {
    type: EVENTS,
    events: sse((text) => ({ choices: [{ index: 0, text, finish_reason: null }] }), {
      choices: [{ index: 0, text: "", finish_reason: "stop" }],
    }),
  },
  messages: {
    type: EVENTS,
    events: (parts) =>
      Buffer.from(
        [messageStart, ...parts.map(messageDelta), messageStop]
          .map((event) => `event: ${event.type}\r\ndata: ${JSON.stringify(event)}\r\n\r\n`)
          .join(""),
      ),
  },
  "arguments of a tool": {
    type: EVENTS,
    isArguments: true,
    events: sse((part) => ({
      type: "content_block_delta",
      index: 1,
      delta: { type: "input_json_delta", partial_json: part },
    })),
  },
  responses: {
    type: `${EVENTS}; charset=utf-8`,
    events: (parts) =>
      sse((delta) => ({ type: "response.output_text.delta", ...PLACE, content_index: 0, delta }), {
        type: "response.output_text.done",
        ...PLACE,
        content_index: 0,
        text: parts.join(""),
      })(parts),
  },
  "arguments of a tool in responses": {
    type: EVENTS,
    isArguments: true,
    events: (parts) =>
      sse((delta) => ({ type: "response.function_call_arguments.delta", ...PLACE, delta }), {
        type: "response.function_call_arguments.done",
        ...PLACE,
        arguments: parts.join(""),
      })(parts),
  },
  gemini: {
    type: EVENTS,
    events: sse((text) => ({ candidates: [{ content: { parts: [{ text }] } }] })),
  },
  "Bedrock's Converse": {
    type: "application/vnd.amazon.eventstream",
    events: aws("contentBlockDelta", (text) => ({ contentBlockIndex: 0, delta: { text }, p: "abc" })),
  },
  "arguments of a tool of Converse": {
    type: "application/vnd.amazon.eventstream",
    isArguments: true,
    events: aws("contentBlockDelta", (input) => ({
      contentBlockIndex: 1,
      delta: { toolUse: { input } },
      p: "abc",
    })),
  },
  "a model of Bedrock": {
    type: "application/vnd.amazon.eventstream",
    events: (parts) => aws("chunk", (text) => inBase64(messageDelta(text)), inBase64(messageStop))(parts),
  },
  "lines of JSON": {
    type: "application/x-ndjson",
    events: (parts) =>
      Buffer.from(
        parts.map((content) => `${JSON.stringify({ message: { content }, done: false })}\n`).join(""),
      ),
  },
  "text that is no JSON": {
    type: EVENTS,
    events: (parts) => Buffer.from(parts.map((part) => `data: ${part}\n\n`).join("")),
  },
};

/** The parts as the form has them: with escapes in the arguments of a tool. */
export const partsFor = ({ isArguments }: StreamForm, parts: readonly string[]) =>
  isArguments === true ? parts.map((part) => part.replaceAll("a", "\\u0061")) : parts;

interface Passed {
  text: string;
  failure: UpstreamFailure | null;
}

/** What passes of a response that arrives in these reads. */
export function pass(
  set: RuleSet,
  findings: Findings,
  type: string,
  reads: readonly Buffer[],
  share = ROOM,
): Passed {
  const passed: Passed = { text: "", failure: null };
  const chunks: Buffer[] = [];
  let upstream: UpstreamHandler | undefined;
  const head: ResponseHead = {
    status: 200,
    statusText: "",
    rawHeaders: ["content-type", type],
    contentType: type,
  };
  guardResponse(
    at(set, "response"),
    findings,
    share,
    (handler) => {
      upstream = handler;
      return { pause: () => undefined, resume: () => undefined, abort: () => undefined };
    },
    {
      onHead: () => undefined,
      onBody: (chunk) => void chunks.push(chunk),
      onReadEnd: () => undefined,
      onFailure: (failure) => (passed.failure = failure),
    },
  );
  upstream?.onHead(head);
  reads.forEach((read, i) => upstream?.onBody(read, i === reads.length - 1));
  passed.text = Buffer.concat(chunks).toString();
  return passed;
}

/** The text of the first choice, as it stands in JSON. */
export const words = (text: string) =>
  [
    ...text
      .replaceAll(/"bytes":"([A-Za-z0-9+/=]+)"/g, (_, bytes: string) =>
        Buffer.from(bytes, "base64").toString(),
      )
      .replaceAll(/^.*"choices":\[\{"index":1.*$/gm, "")
      .matchAll(
        /"(?:content|text|partial_json|delta|arguments|input)":"((?:[^"\\]|\\.)*)"|^data: ([^{[\n].*)$/gm,
      ),
  ]
    .map(([, a = "", b = ""]) => a + b)
    .join("");

/** The same as a person reads it. */
export const shownIn = (text: string) =>
  (JSON.parse(`"${words(text)}"`) as string).replaceAll("\\u0061", "a");

export const SENTENCE = "Grüße, the walrus has 4111 1111 1111 1111 and <EMAIL_1>. Bye";
export const MASKS = setOf(
  parse(
    { id: "w", type: "words", words: ["walrus"], action: "mask" },
    { id: "c", type: "pii", kinds: ["card"], action: "mask" },
  ),
);
export const BLOCKS_WALRUS = setOf(parse({ id: "w", type: "words", words: ["walrus"], action: "block" }));
const MAIL = setOf(parse({ id: "m", type: "pii", kinds: ["email"], action: "mask" }));

/** Of a prompt with an address, whose mask is `<EMAIL_1>`. */
export function findingsWithMail(): Findings {
  const findings = new Findings();
  const body = { kind: "whole" as const, bytes: Buffer.from('{"a":"ada@example.org"}') };
  const request = { origin: {} as never, method: "POST", target: "/", headers: [], body };
  searchWhole(at(MAIL, "prompt"), findings, request);
  return findings;
}

/** The sentence in three pieces, of which the second has three characters. */
export function cutSentence(i: number): readonly string[] {
  return [SENTENCE.slice(0, i), SENTENCE.slice(i, i + 3), SENTENCE.slice(i + 3)].filter(
    (part) => part !== "" && part !== " ",
  );
}

/** Texts with all that hides or begins a match, and rules that find something in each. */
export const TEXTS = [
  SENTENCE,
  "wal walrus walr: call +49 30 1234567, or bob@example.com; 4\u200b111 1111 1111 1111",
  "\u{1d51e}da\u{1d51e}@example.org of 密码 has sk-proj-abcdefghijklmnopqrstuvwx, pays DE89 3704 0044 0532 0130 00",
  "nothing of interest: 1889, 12 and 210 to 214; w a l r u s",
];
const EVERYTHING = ["flag", "mask", "block"].map((action) => ({
  action,
  set: setOf(
    parse(
      { id: "w", type: "words", words: ["walrus", "密码"], action },
      { id: "p", type: "pii", action },
      { id: "s", type: "secrets", action },
    ),
  ),
}));

/** What the rules decide on a text in these parts and reads, for each action. */
export function decisionsOn(form: StreamForm, parts: readonly string[], readLength = Infinity) {
  const bytes = form.events(partsFor(form, parts));
  const reads = Array.from({ length: Math.max(1, Math.ceil(bytes.length / readLength)) }, (_, i) =>
    bytes.subarray(i * Math.min(readLength, bytes.length), (i + 1) * Math.min(readLength, bytes.length)),
  );
  return EVERYTHING.map(({ action, set }) => {
    const findings = new Findings();
    const { text, failure } = pass(set, findings, form.type, reads);
    // Of a stream that is blocked, what leaves depends on where it was cut: never a part of a match.
    const shown = failure === null ? shownIn(text) : "";
    return { action, findings: findings.toJson(), failure: failure?.message ?? null, shown };
  });
}
