import { describe, expect, it } from "vitest";
import { type GuardrailRule, guardrailRules } from "../../accounts/index.ts";
import type { ResponseHead, UpstreamFailure, UpstreamHandler } from "../../engines/relay/index.ts";
import { Findings, GuardrailBlock } from "./findings.ts";
import { searchRequest } from "./request-body.ts";
import { BlockedResponse, guardResponse } from "./response-guard.ts";
import { type PlaceRules, RuleSet } from "./rule-set.ts";
import { tryRules } from "./try-rules.ts";

const parse = (...rules: readonly object[]): GuardrailRule[] => guardrailRules.parse(rules);
const setOf = (rules: readonly GuardrailRule[]) =>
  new RuleSet(rules.map((rule) => ({ owner: "gateway" as const, rule })));
const at = (set: RuleSet, place: "prompt" | "response"): PlaceRules => {
  const rules = set.at(place);
  if (rules === null) throw new Error("no rule looks there");
  return rules;
};

const MASK_ALL = parse(
  { id: "people", type: "pii", action: "mask" },
  { id: "keys", type: "secrets", action: "mask" },
);

/** What a prompt of this text becomes. */
const masked = (text: string) => tryRules(MASK_ALL, text, "prompt").text;

describe("kinds", () => {
  it.each([
    ["write to Ada.L+x@mail.example.co.uk now", "write to <EMAIL_1> now"],
    ["call +49 (0)30 1234567 today", "call <PHONE_1> today"],
    ["call (415) 555-2671 or 415.555.2671", "call <PHONE_1> or <PHONE_2>"],
    ["card 4111 1111 1111 1111.", "card <CARD_1>."],
    ["order 12345 4111-1111-1111-1111", "order 12345 <CARD_1>"],
    ["card 4111 1111 1111 1112", "card 4111 1111 1111 1112"],
    ["to DE89 3704 0044 0532 0130 00 please", "to <IBAN_1> please"],
    ["to DE88370400440532013000 please", "to DE88370400440532013000 please"],
    ["ssn 123-45-6789", "ssn <ID_1>"],
    ["ssn 000-45-6789", "ssn 000-45-6789"],
    ["nino QQ 12 34 56 C, AB 12 34 56 C", "nino QQ 12 34 56 C, <ID_1>"],
    ["cpf 529.982.247-25", "cpf <ID_1>"],
    ["dni 12345678Z, 12345678A", "dni <ID_1>, 12345678A"],
    ["id 11010519491231002X", "id <ID_1>"],
    ["Passport No: C01X00T47", "Passport No: <PASSPORT_1>"],
    ["from 192.168.0.1 and 2001:db8:85a3::8a2e:370:7334", "from <IP_1> and <IP_2>"],
    ["version 1.2.3 of std::vector at 300.1.1.1", "version 1.2.3 of std::vector at 300.1.1.1"],
    ["key sk-proj-abcdefghijklmnopqrstuvwx", "key <KEY_1>"],
    ["AKIAIOSFODNN7EXAMPLE", "<KEY_1>"],
    ["postgres://ada:hunter22@db/x", "<KEY_1>db/x"],
    ["password = 'x8Kd93mZp0Qa'", "password = '<SECRET_1>'"],
    ["password: correct-horse-battery", "password: correct-horse-battery"],
    ["-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "<PRIVATE_KEY_1>"],
    ["ａｄａ@ｅｘａｍｐｌｅ.org", "<EMAIL_1>"],
    ["4\u200b111 1111 1111 1111", "<CARD_1>"],
    ["٤111 1111 1111 1111", "<CARD_1>"],
  ])("of %j is %j", (text, expected) => expect(masked(text)).toBe(expected));

  it("have the same mask for the same text, and none for a text that is allowed", () => {
    const [rule] = parse({ id: "m", type: "pii", kinds: ["email"], action: "mask", allow: ["*@house.org"] });
    const { text } = tryRules([rule as GuardrailRule], "a@b.org, c@d.org, a@b.org, x@house.org", "prompt");
    expect(text).toBe("<EMAIL_1>, <EMAIL_2>, <EMAIL_1>, x@house.org");
  });

  it("of words are words: in any case, as phrases, in scripts without spaces", () => {
    const rules = parse({ id: "w", type: "words", words: ["blue heron", "密码", "c++"], action: "mask" });
    const of = (text: string) => tryRules(rules, text, "prompt").text;
    expect(of("Blue\n Heron, blue herons, 我的密码是, C++ code")).toBe(
      "<W_1>, blue herons, 我的<W_2>是, <W_3> code",
    );
  });

  it("refuse patterns that are malformed, match nothing at all, or are too large", () => {
    for (const pattern of ["(", "a*", "(?=a)", "(?:a{500}){500}", "x".repeat(2000)])
      expect(guardrailRules.safeParse([{ id: "r", type: "regex", pattern, action: "block" }]).success).toBe(
        false,
      );
  });
});

const BLOCK = setOf(
  parse(
    { id: "b", type: "words", words: ["zebra"], action: "block" },
    { id: "c", type: "pii", kinds: ["card"], action: "block" },
  ),
);
const CARD = "4111 1111 1111 1111";

function isBlocked(
  bytes: string | Buffer,
  headers: readonly string[] = ["content-type", "application/json"],
  set = BLOCK,
): boolean {
  const body = { kind: "whole" as const, bytes: Buffer.from(bytes as string) };
  const request = { origin: {} as never, method: "POST", target: "/x", headers, body };
  try {
    searchRequest(at(set, "prompt"), new Findings(), request);
    return false;
  } catch (error) {
    if (error instanceof GuardrailBlock) return true;
    throw error;
  }
}

describe("a prompt", () => {
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  it.each<[string, string]>([
    ["in the first of two members with one name", '{"content":"a zebra","content":"a horse"}'],
    ["in the second of two members with one name", '{"content":"a horse","content":"a zebra"}'],
    ["with escapes", String.raw`{"content":"a \u007aebra"}`],
    ["with escapes inside of a tool's arguments", String.raw`{"arguments":"{\"a\":\"\\u007aebra\"}"}`],
    ["in the name of a member", '{"input":{"zebra":1}}'],
    ["as a number", `{"input":{"n":${CARD.replaceAll(" ", "")}}}`],
    ["in a data URL", `{"image_url":{"url":"data:image/png;base64,${base64("a small zebra")}"}}`],
    ["in a data URL that is not encoded", '{"url":"data:text/plain,a%20zebra"}'],
    ["in encoded bytes", `{"source":{"data":"${base64("a very small zebra")}"}}`],
    [
      "split over two messages",
      '{"messages":[{"role":"user","content":"4111 1111"},{"role":"user","content":" 1111 1111"}]}',
    ],
    [
      "split over the parts of a message",
      '{"content":[{"type":"text","text":"ze"},{"type":"text","text":"bra"}]}',
    ],
    ["in an identifier", '{"tool_call_id":"zebra"}'],
    ["in the query of a deep list", '{"a":[[[["a zebra"]]]]}'],
  ])("is found %s", (_, body) => expect(isBlocked(body)).toBe(true));

  it.each<[string, string | Buffer, readonly string[]]>([
    ["is compressed", "x", ["content-encoding", "gzip"]],
    ["is no text", Buffer.from([0, 255, 1]), ["content-type", "application/octet-stream"]],
    ["is not valid JSON", '{"a":', ["content-type", "application/json"]],
    [
      "contains a picture",
      `{"image":"${Buffer.from([0x89, 0x50, 0, 255, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9]).toString("base64")}"}`,
      ["content-type", "application/json"],
    ],
    ["is a list of tokens", '{"input":[12,7,99]}', ["content-type", "application/json"]],
    ["is a form without boundaries", "zzz", ["content-type", "multipart/form-data; boundary=b"]],
  ])("that %s is refused, unless the rule lets it pass", (_, body, headers) => {
    expect(isBlocked(body, headers)).toBe(true);
    const lenient = setOf(
      parse({ id: "b", type: "words", words: ["zebra"], action: "block", on_failure: "allow" }),
    );
    expect(isBlocked(body, headers, lenient)).toBe(false);
  });

  it("passes as it came if nothing is found, and with other bytes unchanged if something is masked", () => {
    const body = '{ "n": 12345678901234567890, "a":"\\u0041",  "to": "ada@example.org" }';
    const request = {
      origin: {} as never,
      method: "POST",
      target: "/x?key=AIza",
      headers: [],
      body: { kind: "whole" as const, bytes: Buffer.from(body) },
    };
    expect(searchRequest(at(BLOCK, "prompt"), new Findings(), request)).toBe(request);
    const found = searchRequest(at(setOf(MASK_ALL), "prompt"), new Findings(), request).body;
    expect(found.kind === "whole" && found.bytes.toString()).toBe(
      body.replace("ada@example.org", "<EMAIL_1>"),
    );
  });
});

const STREAMS: Readonly<
  Record<string, { readonly type: string; readonly events: (parts: readonly string[]) => string }>
> = {
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

/** What passes of a stream that arrives in these reads. */
function pass(set: RuleSet, findings: Findings, type: string, reads: readonly Buffer[]): Passed {
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
const words = (text: string) =>
  [
    ...text
      .replaceAll(/^.*"choices":\[\{"index":1.*$/gm, "")
      .matchAll(/"(?:content|text|partial_json|delta)":"((?:[^"\\]|\\.)*)"|^data: ([^{[\n].*)$/gm),
  ]
    .map(([, a = "", b = ""]) => a + b)
    .join("");

describe.each(Object.entries(STREAMS))("a stream of %s", (_, { type, events }) => {
  const sentence = "Grüße, the walrus has 4111 1111 1111 1111 and <EMAIL_1>. Bye";
  const masks = setOf(
    parse(
      { id: "w", type: "words", words: ["walrus"], action: "mask" },
      { id: "c", type: "pii", kinds: ["card"], action: "mask" },
    ),
  );
  const findingsWithMail = () => {
    const findings = new Findings();
    const mail = at(setOf(parse({ id: "m", type: "pii", kinds: ["email"], action: "mask" })), "prompt");
    const body = { kind: "whole" as const, bytes: Buffer.from('{"a":"ada@example.org"}') };
    searchRequest(mail, findings, { origin: {} as never, method: "POST", target: "/", headers: [], body });
    return findings;
  };

  it("is masked and put together again, wherever its text is cut", () => {
    for (let i = 0; i <= sentence.length; i++) {
      const parts = [sentence.slice(0, i), sentence.slice(i, i + 3), sentence.slice(i + 3)].filter(
        (part) => part !== "" && part !== " ",
      );
      const { text, failure } = pass(masks, findingsWithMail(), type, [Buffer.from(events(parts))]);
      expect(failure).toBeNull();
      const shown = words(text).replaceAll("\\\\u0061", "a");
      expect(shown).not.toMatch(/walrus|4111|EMAIL/);
      expect(shown).toContain("<W_1> has <CARD_1> and ada@example.org. Bye");
    }
  });

  it("is blocked before the first character of the match, wherever its bytes are cut", () => {
    const block = setOf(parse({ id: "w", type: "words", words: ["walrus"], action: "block" }));
    const bytes = Buffer.from(
      events(Array.from(sentence).map((one) => (one === " " && type.includes("event") ? " " : one))),
    );
    const whole = pass(block, new Findings(), type, [bytes]);
    expect(whole.failure).toBeInstanceOf(BlockedResponse);
    for (let i = 1; i < bytes.length; i += 7) {
      const cut = pass(block, new Findings(), type, [bytes.subarray(0, i), bytes.subarray(i)]);
      expect(cut.failure).toBeInstanceOf(BlockedResponse);
      expect(words(cut.text)).not.toMatch(/w/);
    }
  });

  it("leaves as it came if nothing is found", () => {
    const block = setOf(parse({ id: "x", type: "words", words: ["unheard"], action: "block" }));
    const bytes = Buffer.from(events(Array.from(sentence)));
    const reads = Array.from({ length: bytes.length }, (__, i) => bytes.subarray(i, i + 1));
    expect(pass(block, new Findings(), type, reads)).toEqual({ text: bytes.toString(), failure: null });
  });
});
