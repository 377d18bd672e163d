/** Streams of all dialects, and what passes of them: shared by the tests that cut them in some places, and in all. */
import { type GuardrailRule, guardrailRules } from "../../accounts/index.ts";
import type {
  ResponseHead,
  UpstreamFailure,
  UpstreamHandler,
  UpstreamRequest,
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
  readonly events: (parts: readonly string[]) => string;
}

export const STREAMS: Readonly<Record<string, StreamForm>> = {
  chat: {
    type: "text/event-stream",
    events: (parts) =>
      `${parts.map((content) => `data: ${JSON.stringify({ choices: [{ delta: { content }, index: 0 }] })}\n\n`).join("")}data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`,
  },
  "two choices of chat": {
    type: "text/event-stream",
    events: (parts) =>
      parts
        .map((content) =>
          [0, 1]
            .map((index) => `data: ${JSON.stringify({ choices: [{ index, delta: { content } }] })}\n\n`)
            .join(""),
        )
        .join(""),
  },
  messages: {
    type: "text/event-stream",
    events: (parts) =>
      `event: content_block_start\r\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\r\n\r\n${parts
        .map(
          (text) =>
            `event: content_block_delta\r\ndata: ${JSON.stringify({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } })}\r\n\r\n`,
        )
        .join("")}event: content_block_stop\r\ndata: {"type":"content_block_stop","index":0}\r\n\r\n`,
  },
  "arguments of a tool": {
    type: "text/event-stream",
    events: (parts) =>
      parts
        .map(
          (part) =>
            `data: ${JSON.stringify({ type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: part.replaceAll("a", "\\u0061") } })}\n\n`,
        )
        .join(""),
  },
  responses: {
    type: "text/event-stream; charset=utf-8",
    events: (parts) =>
      `${parts.map((delta) => `data: ${JSON.stringify({ type: "response.output_text.delta", item_id: "m", output_index: 0, content_index: 0, delta })}\n\n`).join("")}data: ${JSON.stringify({ type: "response.output_text.done", item_id: "m", output_index: 0, content_index: 0, text: parts.join("") })}\n\n`,
  },
  gemini: {
    type: "text/event-stream",
    events: (parts) =>
      parts
        .map((text) => `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text }] } }] })}\n\n`)
        .join(""),
  },
  "lines of JSON": {
    type: "application/x-ndjson",
    events: (parts) =>
      parts.map((content) => `${JSON.stringify({ message: { content }, done: false })}\n`).join(""),
  },
  "text that is no JSON": {
    type: "text/event-stream",
    events: (parts) => parts.map((part) => `data: ${part}\n\n`).join(""),
  },
};

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
      onBody: (chunk) => (passed.text += chunk.toString()),
      onReadEnd: () => undefined,
      onFailure: (failure) => (passed.failure = failure),
    },
  );
  upstream?.onHead(head);
  reads.forEach((read, i) => upstream?.onBody(read, i === reads.length - 1));
  return passed;
}

/** The text of the first choice. */
export const words = (text: string) =>
  [
    ...text
      .replaceAll(/^.*"choices":\[\{"index":1.*$/gm, "")
      .matchAll(/"(?:content|text|partial_json|delta)":"((?:[^"\\]|\\.)*)"|^data: ([^{[\n].*)$/gm),
  ]
    .map(([, a = "", b = ""]) => a + b)
    .join("");

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
