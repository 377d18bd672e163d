import { describe, expect, it } from "vitest";
import { embeddingsFromGemini, embeddingsToGemini } from "./index.ts";

const options = { model: "gemini-embedding-001", dropUnsupported: false };

describe("embeddings for Gemini", () => {
  it("become one request for each text", () => {
    const { body, dropped } = embeddingsToGemini(
      { model: "m", input: ["a", "b"], dimensions: 8, user: "u" },
      options,
    );
    const request = (text: string) => ({
      model: "models/gemini-embedding-001",
      content: { parts: [{ text }] },
      outputDimensionality: 8,
    });
    expect(body).toEqual({ requests: [request("a"), request("b")] });
    expect(dropped).toEqual(["user"]);
  });

  it("come back as a list, as numbers or as base64", () => {
    const upstream = { embeddings: [{ values: [0.5, -1] }, { values: [2, 0] }] };
    const plain = embeddingsToGemini({ input: ["a", "b"] }, options).context;
    expect(embeddingsFromGemini(plain, upstream)).toEqual({
      object: "list",
      data: [
        { object: "embedding", index: 0, embedding: [0.5, -1] },
        { object: "embedding", index: 1, embedding: [2, 0] },
      ],
      model: "gemini-embedding-001",
      usage: { prompt_tokens: 0, total_tokens: 0 },
    });
    const packed = embeddingsToGemini({ input: "a", encoding_format: "base64" }, options).context;
    const [first] = embeddingsFromGemini(packed, upstream)["data"] as { embedding: string }[];
    const bytes = Uint8Array.from(atob(first?.embedding ?? ""), (char) => char.charCodeAt(0));
    expect([...new Float32Array(bytes.buffer)]).toEqual([0.5, -1]);
  });

  it("refuse tokens, other encodings and unknown fields by name", () => {
    expect(() => embeddingsToGemini({ input: [[1, 2]] }, options)).toThrow(
      expect.objectContaining({ field: "input[0]" }),
    );
    expect(() => embeddingsToGemini({ input: "a", encoding_format: "x" }, options)).toThrow(
      expect.objectContaining({ field: "encoding_format" }),
    );
    expect(() => embeddingsToGemini({ input: "a", other: 1 }, options)).toThrow(
      expect.objectContaining({ field: "other" }),
    );
  });
});
