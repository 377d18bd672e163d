import fc from "fast-check";
import { expect, it } from "vitest";
import { answerPreview, bodyText, promptPreview } from "./body-text.ts";

const chat = {
  model: "m",
  messages: [
    { role: "system", content: "be brief" },
    { role: "user", content: "first question" },
    { role: "assistant", content: "first answer" },
    { role: "user", content: [{ type: "text", text: 'the "last" question\nwith {braces}' }] },
  ],
};

it("previews the last message of the user, whatever the dialect and the order of members", () => {
  expect(promptPreview(JSON.stringify(chat), 100)).toBe('the "last" question with {braces}');
  expect(promptPreview(JSON.stringify({ messages: [{ content: "x", role: "user" }] }), 100)).toBe("x");
  expect(
    promptPreview(JSON.stringify({ contents: [{ role: "user", parts: [{ text: "gemini" }] }] }), 100),
  ).toBe("gemini");
  expect(promptPreview(JSON.stringify({ model: "m", input: "plain" }), 100)).toBe("plain");
  expect(promptPreview("", 100)).toBeNull();
  expect(promptPreview("not json", 100)).toBeNull();
  expect(promptPreview(JSON.stringify({ input: "x".repeat(50) }), 10)).toBe(`${"x".repeat(9)}…`);
});

it("joins the deltas of a stream, so that a phrase is found although it arrived in parts", () => {
  const stream = ["Hel", "lo wor", "ld"]
    .map((content) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`)
    .join("");
  expect(bodyText(stream)).toBe("Hello world");
  expect(answerPreview(`${stream}data: [DONE]\n\n`, 100)).toBe("Hello world");
  const anthropic = `event: content_block_delta\ndata: ${JSON.stringify({ type: "content_block_delta", delta: { type: "text_delta", text: "Good day" } })}\n\n`;
  expect(answerPreview(anthropic, 100)).toBe("Good day");
});

it("previews the reason of an error, in the forms of all providers", () => {
  const reasons = [
    { error: { message: "Rate limit reached", type: "rate_limit_error" } },
    { success: false, errors: [{ code: 7000, message: "Rate limit reached" }] },
    { error: "Rate limit reached" },
    { detail: "Rate limit reached" },
  ];
  for (const body of reasons) expect(answerPreview(JSON.stringify(body), 100)).toBe("Rate limit reached");
  expect(answerPreview('{"error":{}}', 100)).toBeNull();
});

it("reads bodies that were cut anywhere", () => {
  const text = JSON.stringify(chat);
  for (let end = 0; end <= text.length; end++) {
    expect(() => [bodyText(text.slice(0, end)), promptPreview(text.slice(0, end), 50)]).not.toThrow();
  }
});

it("finds every text that a message contains", () => {
  const property = fc.property(fc.string({ minLength: 1, unit: "binary" }), (content) => {
    fc.pre(content.isWellFormed());
    expect(bodyText(JSON.stringify({ messages: [{ role: "user", content }] }))).toBe(content);
  });
  fc.assert(property);
});

it("hostile bodies cost no more than their length", () => {
  for (const body of [
    '"content":"'.repeat(50_000),
    "{".repeat(300_000),
    '"role":"user"'.repeat(50_000),
    '"text":"\\'.repeat(50_000),
  ]) {
    expect(typeof bodyText(body)).toBe("string");
    expect(promptPreview(body, 100)?.length ?? 0).toBeLessThan(200);
  }
});
