import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { refersToOtherInput } from "./referred-input.ts";

const refers = (text: string) => refersToOtherInput({ kind: "whole", bytes: Buffer.from(text) });

describe("input that is not in the request", () => {
  it.each([
    { previous_response_id: "resp_1" },
    { conversation: "conv_1" },
    { prompt: { id: "pmpt_1" } },
    { input: [{ role: "user", content: [{ type: "input_file", file_id: "file-1" }] }] },
    { input: [{ content: [{ type: "input_file", file_url: "https://example.com/a.pdf" }] }] },
    { messages: [{ content: [{ type: "document", source: { type: "url", url: "https://example.com" } }] }] },
    { contents: [{ parts: [{ fileData: { fileUri: "gs://a/b" } }] }] },
    { cachedContent: "cachedContents/1" },
    { tools: [{ type: "web_search_20250305", name: "web_search" }] },
    { tools: [{ type: "file_search", vector_store_ids: ["vs_1"] }] },
    { tools: [{ googleSearch: {} }] },
    { tools: [{ type: "mcp", server_url: "https://example.com" }] },
    { Previous_Response_ID: "resp_1" },
  ])("is found in %j", (body) => {
    expect(refers(JSON.stringify(body))).toBe(true);
    expect(refers(JSON.stringify(body, null, 2))).toBe(true);
  });

  it("is found when a name is written with escapes, and assumed in what cannot be decoded", () => {
    expect(refers(String.raw`{"previous\u005fresponse_id":"resp_1"}`)).toBe(true);
    expect(refers(String.raw`{"a":"\u00e9","a" 5}`)).toBe(true);
  });

  it("is assumed in a request of which only the beginning is known", () => {
    const start = Buffer.from(
      '{"model":"x","max_output_tokens":1,"input":[{"image_url":"data:image/png;base64,AAAA',
    );
    expect(refersToOtherInput({ kind: "streamed", start, rest: Readable.from([]), length: null })).toBe(true);
  });

  it.each([
    '{"model":"x","messages":[{"role":"user","content":"hi"}]}',
    String.raw`{"messages":[{"role":"user","content":"caf\u00e9"}]}`,
    String.raw`{"messages":[{"role":"user","content":"{\"previous_response_id\": 1}"}]}`,
    '{"tools":[{"type":"function","function":{"name":"web_search_2"}}],"prompt":"conversation"}',
    '{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}]}',
  ])("is not assumed in %s", (text) => {
    expect(refers(text)).toBe(false);
  });
});
