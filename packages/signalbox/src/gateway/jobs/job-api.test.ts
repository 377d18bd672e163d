import { describe, expect, it } from "vitest";
import { jobApiAt } from "./job-api.ts";

describe("a batch of Mistral", () => {
  const path = "v1/batch/jobs";
  const api = jobApiAt(path);
  const demand = (request: object) =>
    api?.demandOf(path, { model: "mistral-small-latest", endpoint: "/v1/chat/completions", ...request });
  const line = { body: { messages: [], max_tokens: 7 } };

  it("has its lines in one file or several, or in the request", () => {
    expect(demand({ input_files: ["a", "b"] })).toMatchObject({
      kind: "files",
      paths: ["v1/files/a/content", "v1/files/b/content"],
    });
    const inline = demand({ requests: [line, { custom_id: "without a body" }] });
    expect(inline).toMatchObject({
      items: [{ model: "mistral-small-latest", usage: { tokensOut: 7, tier: "batch" } }],
    });
  });

  it("says nothing of its work if a file has a name that cannot be asked for", () => {
    expect(demand({ input_files: ["a", "../b"] })).toBeNull();
    expect(demand({})).toEqual({ kind: "items", items: [] });
  });

  it.each([
    ["/v1/embeddings", { tokensOut: 0 }],
    ["/v1/ocr", { pages: 1000, tokensIn: 0 }],
  ])("of %s reserves what such a call may use", (endpoint, usage) => {
    expect(demand({ endpoint, requests: [line] })).toMatchObject({ items: [{ usage }] });
  });

  it.each([
    ["QUEUED", null],
    ["RUNNING", null],
    ["CANCELLATION_REQUESTED", null],
    ["FAILED", { kind: "items", items: [] }],
  ])("that is %s has the result %j", (status, expected) => {
    expect(api?.resultOf(path, "1", { status }, "m")).toEqual(expected);
  });

  it("has used what its output file says, or its answer", () => {
    const body = { usage: { prompt_tokens: 3, completion_tokens: 4 } };
    const outputs = [{ response: { status_code: 200, body } }, { error: "too long" }];
    const used = { model: "m", usage: { tokensIn: 3, tokensOut: 4, tier: "batch" } };
    expect(api?.resultOf(path, "1", { status: "SUCCESS", outputs }, "m")).toMatchObject({ items: [used] });
    expect(api?.itemOf({ response: { body } }, "m")).toMatchObject(used);
    expect(api?.resultOf(path, "1", { status: "CANCELLED", output_file: "out" }, "m")).toEqual({
      kind: "files",
      paths: ["v1/files/out/content"],
    });
  });
});
