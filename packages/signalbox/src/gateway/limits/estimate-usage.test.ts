import { expect, it } from "vitest";
import { estimateInput, estimateOutput } from "./estimate-usage.ts";

const whole = (value: unknown) => ({ kind: "whole", bytes: Buffer.from(JSON.stringify(value)) }) as const;
const base64 = (text: string, length: number) => Buffer.from(text).toString("base64") + "A".repeat(length);

it("counts text by its length", () => {
  const content = "word ".repeat(6000);
  const tokens = estimateInput(whole({ messages: [{ role: "user", content }] }));
  expect(tokens).toBeGreaterThan(10_000);
  expect(tokens).toBeLessThan(10_100);
});

it.each([
  ["a picture of chat", { image_url: { url: `data:image/png;base64,${"A".repeat(1_500_000)}` } }, 1600],
  ["a picture of messages", { source: { type: "base64", data: base64("\u0089PNG", 900_000) } }, 240_000],
  ["a JPEG of Gemini", { inlineData: { mimeType: "image/jpeg", data: `/9j/${"A".repeat(900_000)}` } }, 1600],
  ["a PDF", { file: { file_data: `data:application/pdf;base64,${"A".repeat(300_000)}` } }, 12_000],
  ["sound", { input_audio: { data: `UklGR${"A".repeat(300_000)}`, format: "wav" } }, 300],
])("counts %s by what models make of it", (_, part, about) => {
  const tokens = estimateInput(whole({ messages: [{ content: [part] }] }));
  expect(tokens).toBeGreaterThanOrEqual(about * 0.9);
  expect(tokens).toBeLessThanOrEqual(about * 1.1 + 100);
});

it("takes a long text for a text, whatever it looks like", () => {
  const text = `data:image/png;base64,${"A".repeat(300_000)}`;
  expect(estimateInput(whole({ messages: [{ content: text }] }))).toBeGreaterThan(99_000);
  expect(estimateInput(whole({ messages: [{ content: [{ type: "text", text }] }] }))).toBeGreaterThan(99_000);
});

it("counts the unknown rest of a streamed body like its beginning", () => {
  const start = Buffer.from(
    `{"messages":[{"content":[{"image_url":{"url":"data:image/png;base64,${"A".repeat(60_000)}`,
  );
  const rest = { kind: "streamed", start, rest: null as never, length: 9_000_000 } as const;
  expect(estimateInput(rest)).toBeLessThan(2000);
  const text = Buffer.from(`{"messages":[{"content":"${"A".repeat(60_000)}`);
  expect(estimateInput({ ...rest, start: text })).toBeGreaterThan(2_900_000);
});

it("counts output by the text that went through", () => {
  const delta = (content: string) =>
    `data: ${JSON.stringify({ id: "chatcmpl-1", choices: [{ delta: { content } }] })}\n\n`;
  const stream = Buffer.from([...Array<string>(40).fill(delta("one "))].join(""));
  expect(estimateOutput(stream, stream.length)).toBe(40);
  // Of a longer stream, the beginning tells how much text the rest has.
  expect(estimateOutput(stream, stream.length * 3)).toBe(120);
  expect(estimateOutput(Buffer.alloc(0), 0)).toBe(0);
  expect(estimateOutput(Buffer.alloc(0), 4000)).toBe(20);
});
