import { expect, it } from "vitest";
import { contentAttributes } from "./call-content.ts";

function input(messages: readonly object[]): { role: string; parts: Record<string, unknown>[] }[] {
  const bytes = Buffer.from(JSON.stringify({ model: "m", messages }));
  const [name, text] = contentAttributes(bytes, null);
  expect(name).toBe("gen_ai.input.messages");
  expect(String(text).length).toBeLessThanOrEqual(64 * 1024);
  return JSON.parse(String(text)) as { role: string; parts: Record<string, unknown>[] }[];
}

it("messages that are too long stay JSON: long parts are cut, and the oldest messages left out", () => {
  const long = Array.from({ length: 30 }, (_, i) => ({ role: "user", content: `${i} ${"x".repeat(9000)}` }));
  const kept = input(long);
  expect(kept.length).toBeGreaterThan(3);
  expect(kept.at(-1)?.parts[0]?.["content"]).toMatch(/^29 x+…$/);
  const image = { type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(100_000)}` } };
  expect(input([{ role: "user", content: [{ type: "text", text: "what is it?" }, image] }])).toEqual([
    {
      role: "user",
      parts: [
        { type: "text", content: "what is it?" },
        { type: "image_url", truncated: true, characters: JSON.stringify(image).length },
      ],
    },
  ]);
});

it("messages that fit are sent whole", () => {
  expect(input([{ role: "user", content: "x".repeat(20_000) }])[0]?.parts[0]?.["content"]).toHaveLength(
    20_000,
  );
});
