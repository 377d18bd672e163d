import { describe, expect, it, vi } from "vitest";
import { type GuardrailRule, guardrailRules } from "../../accounts/index.ts";
import { type ResponseHead, type UpstreamHandler, writeAwsMessage } from "../../engines/relay/index.ts";
import type { Step } from "../step/step.ts";
import { CallGuard } from "./call-guard.ts";
import { Findings, GuardrailBlock } from "./findings.ts";
import {
  at,
  BLOCKS_WALRUS,
  cutSentence,
  decisionsOn,
  findingsWithMail,
  MASKS,
  parse,
  partsFor,
  pass,
  ROOM,
  searchWhole,
  SENTENCE,
  setOf,
  shownIn,
  STREAMS,
  TEXTS,
  words,
} from "./guarded-streams-fixture.ts";
import { BlockedResponse } from "./blocked-response.ts";
import { Judges } from "./judges.ts";
import { searchText } from "./request-body.ts";
import { SessionGuard } from "./session-guard.ts";
import { judgeResponse } from "./judged-response.ts";
import { inOnePiece } from "./slices.ts";
import { tryRules } from "./try-rules.ts";

/** Judges that are not asked. */
const NOBODY = {
  judges: new Judges({
    server: { call: () => Promise.reject(new Error("not asked")) },
    askWebhook: () => Promise.reject(new Error("not asked")),
  }),
  call: { accountId: "a", gatewayId: "g", tokenId: null, metadata: null },
};

const MASK_ALL = parse(
  { id: "people", type: "pii", action: "mask" },
  { id: "keys", type: "secrets", action: "mask" },
);

const MASKED_SET = setOf(MASK_ALL);

/** What a prompt of this text becomes. */
function masked(text: string): string {
  return inOnePiece(searchText(at(MASKED_SET, "prompt"), new Findings(), text, false)) ?? text;
}

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
    ["my number 1234 5678 9018, 1234-5678-9019", "my number <ID_1>, 1234-5678-9019"],
    ["マイナンバー: 123456789018 or order 123456789018", "マイナンバー: <ID_1> or order 123456789018"],
    ["curp HEGG560427MVZRRL04, HEGG560427MVZRRL05", "curp <ID_1>, HEGG560427MVZRRL05"],
    [
      "rrn 900101-1234568, 9001011234568, 9001011234567, 901301-1234568",
      "rrn <ID_1>, <ID_2>, 9001011234567, 901301-1234568",
    ],
    ["snils 112-233-445 95, 11223344595, 112-233-445 96", "snils <ID_1>, <ID_2>, 112-233-445 96"],
    ["inn 500100732259, 500100732258", "inn <ID_1>, 500100732258"],
    ["tfn 123 456 782, TFN: 123456782, order 123456782", "tfn <ID_1>, TFN: <ID_2>, order 123456782"],
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

  it("are tried when it is the turn of the trial", async () => {
    const { promise: turn, resolve: begin } = Promise.withResolvers<void>();
    let isDone = false;
    const trial = tryRules(MASK_ALL, "a@b.org", "prompt", () => turn).finally(() => (isDone = true));
    await tryRules(MASK_ALL, "another trial, which takes as many steps", "prompt");
    expect(isDone).toBe(false);
    begin();
    expect((await trial).text).toBe("<EMAIL_1>");
  });

  it("have the same mask for the same text, and none for a text that is allowed", async () => {
    const [rule] = parse({ id: "m", type: "pii", kinds: ["email"], action: "mask", allow: ["*@house.org"] });
    const sent = "a@b.org, c@d.org, a@b.org, x@house.org";
    const { text } = await tryRules([rule as GuardrailRule], sent, "prompt");
    expect(text).toBe("<EMAIL_1>, <EMAIL_2>, <EMAIL_1>, x@house.org");
  });

  it("of words are words: in any case, as phrases, in scripts without spaces", async () => {
    const rules = parse({ id: "w", type: "words", words: ["blue heron", "密码", "c++"], action: "mask" });
    const of = async (text: string) => (await tryRules(rules, text, "prompt")).text;
    expect(await of("Blue\n Heron, blue herons, 我的密码是, C++ code")).toBe(
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
const PNG = Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\r\xff\xfe", "latin1");
const PDF = Buffer.from(`%PDF-1.7\n%${"\xff".repeat(60)}`, "latin1").toString("base64");

function isBlocked(
  bytes: string | Buffer,
  headers: readonly string[] = ["content-type", "application/json"],
  set = BLOCK,
): boolean {
  const body = { kind: "whole" as const, bytes: Buffer.from(bytes as string) };
  const request = { origin: {} as never, method: "POST", target: "/x", headers, body };
  try {
    searchWhole(at(set, "prompt"), new Findings(), request);
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
    ["in a data URL in capitals", `{"url":" DATA:image/png;BASE64,${base64("a small zebra")}"}`],
    ["under a name that providers use for themselves", '{"signature":"a zebra","p":"x"}'],
    ["as the role of a message", '{"messages":[{"role":"zebra"}]}'],
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
    [
      "under a name of the protocol in a tool's input",
      '{"content":[{"type":"tool_use","input":{"type":"zebra"}}]}',
    ],
    ["in encoded bytes on several lines", `{"data":"${base64("x".repeat(57))}\\n${base64("a zebra")}"}`],
    ["in the query of a deep list", '{"a":[[[["a zebra"]]]]}'],
    ["before the comma of a text that begins with data:", `{"content":"Data: card ${CARD}, exp 12/27"}`],
    [
      "behind the beginning of a picture",
      `{"content":"data:image/png;base64,${PNG.toString("base64").slice(0, 12)} and a zebra"}`,
    ],
    ["in the head of a picture", `{"url":"data:image/png;name=zebra;base64,${PNG.toString("base64")}"}`],
    [
      "in a data URL that only a reader that forgives decodes",
      `{"url":"data:text/plain;base64,${base64("a small zebra").replace("z", "z ")}"}`,
    ],
    ["in a data URL with escapes that are no text", '{"url":"data:text/plain,%01a %ff%20%7aebra"}'],
    ["in a data URL with an escape that is none", '{"url":"data:text/plain,a%20%7aebra,5%"}'],
  ])("is found %s", (_, body) => expect(isBlocked(body)).toBe(true));

  it("that only begins like a data URL is a text", () => {
    for (const text of ["Data: growth, up 5% ", "data:,5%", "data:image/png;base64, what does it mean?"])
      expect(isBlocked(JSON.stringify({ content: text }))).toBe(false);
    const sent = JSON.stringify({ content: "Data: ada@example.org, up 5%" });
    expect(masked(sent)).toBe(sent.replace("ada@example.org", "<EMAIL_1>"));
  });

  it("that spans texts is judged by each rule, whatever the others found in a part of it", () => {
    const set = (allow: readonly string[]) =>
      setOf(
        parse(
          { id: "f", type: "regex", pattern: "[0-9]{4}", action: "flag" },
          { id: "c", type: "pii", kinds: ["card"], action: "block", allow },
        ),
      );
    const body = JSON.stringify({ messages: [{ content: "4111 1111" }, { content: "1111 1111" }] });
    expect(isBlocked(body, [], set([]))).toBe(true);
    expect(isBlocked(body, [], set(["4111*"]))).toBe(false);
  });

  it("that is refused because it cannot be masked says so", async () => {
    const url = `data:text/plain;base64,${base64("write to ada@example.org")}`;
    expect(await tryRules(MASK_ALL, JSON.stringify({ url }), "prompt")).toEqual({
      action: "block",
      text: null,
      findings: [
        { rule: "people", action: "mask", kind: "EMAIL", count: 1 },
        { rule: "people", action: "block", kind: "unmaskable", count: 1 },
      ],
    });
  });

  it("has a name flagged in every call", () => {
    const rules = at(setOf(parse({ id: "f", type: "words", words: ["zebra"], action: "flag" })), "prompt");
    for (let i = 0; i < 2; i++) {
      const findings = new Findings();
      const body = { kind: "whole" as const, bytes: Buffer.from('{"input":{"zebra":1}}') };
      searchWhole(rules, findings, { origin: {} as never, method: "POST", target: "/", headers: [], body });
      expect(findings.action).toBe("flag");
    }
  });

  it.each<[string, string | Buffer, readonly string[]]>([
    ["is compressed", "x", ["content-encoding", "gzip"]],
    ["is no text", Buffer.from([0, 255, 1]), ["content-type", "application/octet-stream"]],
    ["is not valid JSON", '{"a":', ["content-type", "application/json"]],
    ["contains a document", `{"data":"${PDF}"}`, ["content-type", "application/json"]],
    [
      "says that a document is a picture",
      `{"url":"data:image/png;base64,${PDF}"}`,
      ["content-type", "application/json"],
    ],
    [
      "hides a document behind the head of a picture",
      `{"url":"data:image/png;base64,${Buffer.concat([PNG, Buffer.from("%PDF-1.7")]).toString("base64")}"}`,
      ["content-type", "application/json"],
    ],
    ["is in another character set", "+AHo-ebra", ["content-type", "text/plain; charset=utf-7"]],
    [
      "is JSON only for a reader that forgives",
      String.raw`{"a":"\u007aebra",}`,
      ["content-type", "text/plain"],
    ],
    [
      "has something before the form",
      "--a\r\n\r\nx\r\n--b\r\n\r\ny\r\n--b--",
      ["content-type", "multipart/form-data; boundary=a; boundary=b"],
    ],
    [
      "has an encoded part",
      "--b\r\ncontent-transfer-encoding: base64\r\n\r\nemVicmE=\r\n--b--",
      ["content-type", "multipart/form-data; boundary=b"],
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

  it("is JSON if it looks so, also under the type of a form", () => {
    const form = ["content-type", "application/x-www-form-urlencoded"];
    expect(isBlocked(String.raw`{"a":"\u007aebra"}`, form)).toBe(true);
    expect(isBlocked("a=%7Aebra", form)).toBe(true);
    expect(isBlocked('{"a":"lion"}', form)).toBe(false);
  });

  it("with a picture passes, unless a rule says that it must not", () => {
    const body = `{"image":"${PNG.toString("base64")}"}`;
    const json = ["content-type", "application/json"];
    expect(isBlocked(body, json)).toBe(false);
    expect(isBlocked(PNG, ["content-type", "image/png"])).toBe(false);
    const strict = setOf(
      parse({ id: "b", type: "words", words: ["zebra"], action: "block", on_media: "block" }),
    );
    expect(isBlocked(body, json, strict)).toBe(true);
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
    expect(searchWhole(at(BLOCK, "prompt"), new Findings(), request)).toBe(request);
    const found = searchWhole(at(MASKED_SET, "prompt"), new Findings(), request).body;
    expect(found.kind === "whole" && found.bytes.toString()).toBe(
      body.replace("ada@example.org", "<EMAIL_1>"),
    );
  });
});

describe("a long text", () => {
  const MAIL = "ada@example.org";
  /** Prose with addresses at the ends of slices. */
  const prose = Array.from(
    { length: 12 },
    (_, i) => `${"The line is clear. ".repeat(1724)}x${i} ${MAIL} `,
  ).join("");
  const forms = [
    ["one message", "application/json", JSON.stringify({ messages: [{ role: "user", content: prose }] })],
    [
      "many messages",
      "application/json",
      JSON.stringify({ messages: prose.split(". ").map((content) => ({ content })) }),
    ],
    [
      "the arguments of a tool",
      "application/json",
      JSON.stringify({ arguments: JSON.stringify({ a: prose }) }),
    ],
    ["plain text", "text/plain", prose],
    [
      "lines of JSON",
      "text/plain",
      prose
        .match(/.{1,2000}(?: |$)/g)
        ?.map((text) => JSON.stringify({ text }))
        .join("\n") ?? "",
    ],
    [
      "a form",
      "multipart/form-data; boundary=b",
      `--b\r\ncontent-disposition: form-data; name="a"\r\n\r\n${prose}\r\n--b--`,
    ],
  ] as const;

  it.each(forms)(
    "of a prompt, as %s, is searched in turns, and masked as in one piece",
    async (_, type, body) => {
      let turns = 0;
      const share = {
        holdMemory: () => true,
        beginWork(bytes: number, piece: () => void) {
          expect(bytes).toBe(body.length);
          turns += 1;
          setImmediate(piece);
        },
      };
      const guard = new CallGuard(MASKED_SET, share, NOBODY);
      const upstream = {
        origin: {} as never,
        method: "POST",
        target: "/",
        headers: ["content-type", type],
        body: { kind: "whole" as const, bytes: Buffer.from(body) },
      };
      const { upstream: sent } = await guard.guard({ upstream } as unknown as Step);
      const bytes = sent.body.kind === "whole" ? sent.body.bytes.toString() : "";
      expect(bytes === body.replaceAll(MAIL, "<EMAIL_1>")).toBe(true);
      expect(turns).toBeGreaterThan(body.length / (64 * 1024));
    },
  );

  it("of an answer is searched in turns, and nothing follows a slice in which a rule refuses it", () => {
    let turns = 0;
    const share = { ...ROOM, beginWork: (_: number, piece: () => void) => ((turns += 1), piece()) };
    const answerOf = (text: string) => [Buffer.from(JSON.stringify({ content: text }))];
    const passed = pass(MASKED_SET, new Findings(), "application/json", answerOf(prose), share);
    expect(passed.text === JSON.stringify({ content: prose.replaceAll(MAIL, "<EMAIL_1>") })).toBe(true);
    expect(turns).toBeGreaterThan(10);
    const allTurns = turns;
    turns = 0;
    const blocked = pass(
      BLOCKS_WALRUS,
      new Findings(),
      "application/json",
      answerOf(`a walrus ${prose}`),
      share,
    );
    expect([blocked.text, blocked.failure]).toEqual(["", expect.any(BlockedResponse)]);
    expect(turns).toBeLessThan(allTurns - 5);
  });
});

describe.each(Object.entries(STREAMS))("a stream of %s", (_, form) => {
  const { type, events } = form;
  // Every position is cut in guarded-streams.long.test.ts.
  it("is masked and put together again where its text is cut", () => {
    for (let i = 0; i <= SENTENCE.length; i += 6) {
      const reads = [events(partsFor(form, cutSentence(i)))];
      const { text, failure } = pass(MASKS, findingsWithMail(), type, reads);
      expect(failure).toBeNull();
      const shown = shownIn(text);
      expect(shown).not.toMatch(/walrus|4111|EMAIL/);
      expect(shown).toContain("<W_1> has <CARD_1> and ada@example.org. Bye");
    }
  });

  it("is blocked before the first character of the match, and not before what may pass", () => {
    const bytes = events(partsFor(form, Array.from(SENTENCE)));
    for (let i = 1; i <= bytes.length; i += 199) {
      const reads = [bytes.subarray(0, i), bytes.subarray(i)];
      const { text, failure } = pass(BLOCKS_WALRUS, new Findings(), type, reads);
      expect(failure).toBeInstanceOf(BlockedResponse);
      expect(words(text)).not.toMatch(/w/);
      expect(shownIn(text)).toContain("Gr\u00fc\u00dfe, the");
    }
  });

  it("leaves as it came if nothing is found", () => {
    const block = setOf(parse({ id: "x", type: "words", words: ["unheard"], action: "block" }));
    const bytes = events(partsFor(form, Array.from(SENTENCE)));
    const reads = Array.from({ length: bytes.length }, (__, i) => bytes.subarray(i, i + 1));
    expect(pass(block, new Findings(), type, reads)).toEqual({ text: bytes.toString(), failure: null });
  });

  it("has the decision of the whole text where it is cut", () => {
    for (const text of TEXTS) {
      const characters = Array.from(text);
      const whole = decisionsOn(form, [text]);
      for (let i = 5; i < characters.length; i += 17) {
        const parts = [characters.slice(0, i).join(""), characters.slice(i).join("")];
        expect([parts, decisionsOn(form, parts)]).toEqual([parts, whole]);
      }
    }
  });
});

describe("a text that another one interrupts", () => {
  const type = "text/event-stream";
  const say = (content: string) => ({ choices: [{ index: 0, delta: { content } }] });
  const tool = (text: string) => ({
    choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: text } }] } }],
  });
  const finish = { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] };
  const stream = (...events: readonly object[]) =>
    Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
  /** More than waits behind a text. */
  const long = Array.from({ length: 400 }, (_, i) => tool(`${i} `));
  const contents = (text: string) =>
    [...text.matchAll(/"content":"([^"]*)"/g)].map(([, content]) => content).join("");
  const blocked = (...events: readonly object[]) => {
    const { text, failure } = pass(BLOCKS_WALRUS, new Findings(), type, [stream(...events)]);
    expect(failure).toBeInstanceOf(BlockedResponse);
    return text;
  };

  it("is found when it goes on, and its beginning has not left", () => {
    for (const between of [[tool("{}")], long])
      expect(contents(blocked(say("the wal"), ...between, say("rus sings"), finish))).toBe("the ");
  });

  it("is masked as one", () => {
    for (const between of [[tool("{}")], long]) {
      const parts = ["the wal", "rus has 4111 1111 ", "1111 1111."].map(say);
      const events = [...parts.flatMap((part) => [part, ...between]), finish];
      const { text, failure } = pass(MASKS, new Findings(), type, [stream(...events)]);
      expect([failure, contents(text)]).toEqual([null, "the <W_1> has <CARD_1>."]);
    }
  });

  it("does not hold the other one for long, and is whole in the end", () => {
    const { text, failure } = pass(BLOCKS_WALRUS, new Findings(), type, [
      stream(say("a wal"), ...long),
      stream(finish),
    ]);
    expect([failure, contents(text)]).toEqual([null, "a wal"]);
    // Its end comes in an event of its own, before the one that ends the text.
    const events = text.trimEnd().split("\n\n");
    const documents = events.map((event) => JSON.parse(event.slice("data: ".length)) as object);
    expect(documents.slice(-2)).toEqual([say("wal"), finish]);
  });

  it("waits with the other one if that is short, so that the stream leaves as it came", () => {
    const bytes = stream(say("a wal"), tool("{}"), say("k"), finish);
    expect(pass(BLOCKS_WALRUS, new Findings(), type, [bytes]).text).toBe(bytes.toString());
  });

  it("is not ended by names in the arguments of a tool, nor by reasons to finish that are none", () => {
    const candidate = (part: object, rest = {}) => ({
      candidates: [{ content: { parts: [part] }, ...rest }],
    });
    const call = candidate({ functionCall: { args: { turnComplete: true, finishReason: "x" } } });
    const part = (text: string) => candidate({ text }, { finishReason: "FINISH_REASON_UNSPECIFIED" });
    expect(blocked(part("the wal"), call, part("rus"))).not.toContain("wal");
    const chunk = (content: string) => ({ choices: [{ index: 0, delta: { content }, finish_reason: "" }] });
    expect(contents(blocked(chunk("the wal"), chunk("rus")))).toBe("the ");
  });

  it("with half an escape at its end leaves", () => {
    const { text } = pass(BLOCKS_WALRUS, new Findings(), type, [stream(tool("a wal\\u00"))]);
    expect(text).toContain("a wal");
  });
});

describe("a response", () => {
  it("that has to be in memory counts in the share of its caller, and is refused without room", () => {
    let held = 0;
    const share = { ...ROOM, holdMemory: (bytes: number) => (held += bytes) < 5000 };
    const json = (length: number) => [Buffer.from(JSON.stringify({ text: "x".repeat(length) }))];
    expect(pass(BLOCKS_WALRUS, new Findings(), "application/json", json(1000), share).failure).toBeNull();
    expect(held).toBeGreaterThan(2000);
    expect(pass(BLOCKS_WALRUS, new Findings(), "application/json", json(1000), share)).toMatchObject({
      text: "",
      failure: { kind: "refused" },
    });
  });

  it("ends where it has too many texts at once, also if the rules let pass what they cannot search", () => {
    const set = setOf(
      parse({ id: "w", type: "words", words: ["walrus"], action: "block", on_failure: "allow" }),
    );
    const choices = Array.from({ length: 10_001 }, (_, index) => ({ index, delta: { content: "wal" } }));
    const event = Buffer.from(`data: ${JSON.stringify({ choices })}\n\n`);
    const passed = pass(set, new Findings(), "text/event-stream", [event]);
    expect(passed.text).toBe("");
    expect(passed.failure).toMatchObject({ kind: "broken" });
  });

  it("of one long binary event is copied a few times, not once for each read", () => {
    const event = writeAwsMessage({ ":event-type": "chunk" }, JSON.stringify({ text: "x".repeat(200_000) }));
    const reads = Array.from({ length: Math.ceil(event.length / 1000) }, (_, i) =>
      event.subarray(i * 1000, (i + 1) * 1000),
    );
    const concat = vi.spyOn(Buffer, "concat");
    const passed = pass(BLOCKS_WALRUS, new Findings(), "application/vnd.amazon.eventstream", reads);
    let copied = 0;
    for (const { value } of concat.mock.results) copied += (value as Buffer).length;
    concat.mockRestore();
    expect(passed).toEqual({ text: event.toString(), failure: null });
    expect(copied).toBeLessThan(5 * event.length);
  });

  it("has tool inputs searched whatever their members are called", () => {
    const input = { user: "walrus", type: "walrus", signature: "walrus" };
    const answer = JSON.stringify({ content: [{ type: "tool_use", id: "t", name: "f", input }] });
    const reads = [Buffer.from(answer)];
    const blocked = pass(BLOCKS_WALRUS, new Findings(), "application/json", reads);
    expect(blocked.failure).toBeInstanceOf(BlockedResponse);
    const other = pass(MASKS, new Findings(), "application/json", reads);
    expect(other.text).toBe(answer.replaceAll("walrus", "<W_1>"));
  });
});

describe("an answer", () => {
  const forms = [
    ["application/json", (json: string) => json],
    ["text/event-stream", (json: string) => `data: ${json}\n\n`],
  ] as const;

  it.each(forms)("of %s is searched in what only begins like a data URL, and in heads", (type, form) => {
    const texts = [
      "Data: the walrus, up 5%",
      `data:image/png;base64,${PNG.toString("base64").slice(0, 12)} is a walrus`,
      `data:image/png;name=walrus;base64,${PNG.toString("base64")}`,
    ];
    for (const content of texts) {
      const reads = [Buffer.from(form(JSON.stringify({ choices: [{ index: 0, message: { content } }] })))];
      const { failure } = pass(BLOCKS_WALRUS, new Findings(), type, reads);
      expect(failure).toBeInstanceOf(BlockedResponse);
    }
  });

  it.each(forms)("of %s has its masks put back in names that another call did not know", (type, form) => {
    const set = setOf(parse({ id: "c", type: "pii", kinds: ["card"], action: "mask" }));
    const reads = [Buffer.from(form('{"input":{"<EMAIL_1>":1}}'))];
    expect(pass(set, new Findings(), type, reads).text).toContain("<EMAIL_1>");
    expect(pass(set, findingsWithMail(), type, reads).text).toContain("ada@example.org");
  });
});

describe("masks", () => {
  const mail = at(setOf(parse({ id: "m", type: "pii", kinds: ["email"], action: "mask" })), "prompt");
  const maskedBy = (findings: Findings, text: string) => {
    const body = { kind: "whole" as const, bytes: Buffer.from(JSON.stringify({ text })) };
    const request = { origin: {} as never, method: "POST", target: "/", headers: [], body };
    const found = searchWhole(mail, findings, request).body;
    return found.kind === "whole" ? found.bytes.toString() : "";
  };

  it("of a client are never those of a text", () => {
    for (const own of ["<EMAIL_1>", String.raw`\u003cEMAIL_1\u003E`]) {
      const findings = new Findings();
      findings.reserve(own);
      expect(maskedBy(findings, "a@b.org")).toContain("<EMAIL_2>");
    }
  });

  it("of a rule with a long name are put back", () => {
    const set = setOf(parse({ id: `1${"a".repeat(63)}`, type: "words", words: ["walrus"], action: "mask" }));
    const findings = new Findings();
    const body = { kind: "whole" as const, bytes: Buffer.from('{"text":"walrus"}') };
    const request = { origin: {} as never, method: "POST", target: "/", headers: [], body };
    const sent = searchWhole(at(set, "prompt"), findings, request).body;
    const bytes = sent.kind === "whole" ? sent.bytes : Buffer.from("");
    expect(bytes.toString()).not.toContain("walrus");
    expect(pass(set, findings, "application/json", [bytes]).text).not.toContain("RULE_");
  });

  it("of a call that refers to an earlier one have numbers of their own, so that earlier ones stay", () => {
    const findings = new Findings();
    findings.numberApart();
    expect(maskedBy(findings, "a@b.org")).toMatch(/<EMAIL_\d{12}>/);
    const answer = [Buffer.from('{"text":"<EMAIL_1>"}')];
    expect(pass(MASKS, findings, "application/json", answer).text).toBe('{"text":"<EMAIL_1>"}');
  });

  it("of a client beyond a number are not remembered; those of texts have numbers of their own then", () => {
    const findings = new Findings();
    findings.reserve(Array.from({ length: 10_000 }, (_, i) => `<A_${i}>`).join(""));
    expect(maskedBy(findings, "a@b.org")).toContain("<EMAIL_1>");
    findings.reserve("<EMAIL_2>");
    expect(maskedBy(findings, "c@d.org")).toMatch(/<EMAIL_\d{12}>/);
  });

  it("have a bound in memory, beyond which a text is refused", () => {
    const findings = new Findings();
    const [rule] = mail.texts;
    if (rule === undefined) throw new Error("no rule");
    const mask = (i: number) => findings.judge("prompt", rule, String(i).padStart(100_000, "x"));
    expect(() => Array.from({ length: 100 }, (_, i) => mask(i))).toThrow(GuardrailBlock);
    // Those that are known are masked all the same.
    expect(mask(0)).toBe("<EMAIL_1>");
  });

  it("of a session have numbers of their own if messages passed before its first rule that masks", async () => {
    const flags = setOf(parse({ id: "f", type: "words", words: ["teal"], action: "flag" }));
    const masks = setOf(parse({ id: "m", type: "pii", kinds: ["email"], action: "mask" }));
    let rules = flags;
    const guard = new SessionGuard(() => rules, NOBODY);
    const say = async (text: string) => {
      const sent = await guard.fromClient({ data: Buffer.from(JSON.stringify({ text })), isBinary: false });
      return sent.data.toString();
    };
    await say("<EMAIL_1>");
    rules = masks;
    expect(await say("a@b.org")).toMatch(/<EMAIL_\d{12}>/);
  });
});

describe.each(Object.entries(STREAMS))("the judges of a stream of %s", (_, form) => {
  const { type, events } = form;
  /** What is asked, and what passes, if the bytes arrive in reads of a length. */
  const judge = async (bytes: Buffer, readLength: number, isHeld: boolean) => {
    const asked: string[] = [];
    let passed = "";
    let reads: UpstreamHandler | null = null;
    const ended = new Promise<void>((resolve) => {
      const handler: UpstreamHandler = {
        onHead: () => undefined,
        onBody(chunk, isLast) {
          passed += chunk.toString("utf8");
          if (isLast) resolve();
        },
        onReadEnd: () => undefined,
        onFailure: () => resolve(),
      };
      judgeResponse(
        { judge: (text) => Promise.resolve(void asked.push(text)), unjudged: () => undefined },
        isHeld,
        ROOM,
        (inner) => {
          reads = inner;
          return { pause: () => undefined, resume: () => undefined, abort: () => undefined };
        },
        handler,
      );
    });
    const inner = reads as UpstreamHandler | null;
    inner?.onHead({ status: 200, contentType: type, rawHeaders: [] } as unknown as ResponseHead);
    for (let i = 0; i < bytes.length; i += readLength)
      inner?.onBody(bytes.subarray(i, i + readLength), i + readLength >= bytes.length);
    await ended;
    return { asked, passed };
  };

  it("are asked the same, however the bytes are cut, and the stream passes as it came", async () => {
    const sentences = Array.from(
      { length: 40 },
      (_, i) => `On day ${i} the sea was calm, said Ada to the others. `,
    );
    const bytes = events(partsFor(form, sentences));
    const whole = await judge(bytes, bytes.length, false);
    expect(whole.asked.length).toBeGreaterThan(1);
    expect(whole.passed).toBe(bytes.toString("utf8"));
    for (const length of [1, 7, 100, 1000]) expect(await judge(bytes, length, false)).toEqual(whole);
    const held = await judge(bytes, 100, true);
    expect([held.asked.length, held.passed]).toEqual([1, whole.passed]);
  });
});
