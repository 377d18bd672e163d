import fc from "fast-check";
import { expect, it } from "vitest";
import { BUILT_IN_PROVIDERS } from "../providers/built-in.ts";
import { createProvider } from "../providers/provider.ts";
import { requestStreamUsage } from "./stream-usage.ts";

function providerOf(slug: string) {
  const definition = BUILT_IN_PROVIDERS.find((one) => one.slug === slug);
  if (definition === undefined) throw new Error(slug);
  return createProvider(definition);
}

const ask = (body: string, slug = "openai") =>
  requestStreamUsage(providerOf(slug), "m", { kind: "whole", bytes: Buffer.from(body) });

function sent(body: string): string {
  const request = ask(body);
  return request?.body.kind === "whole" ? request.body.bytes.toString() : "";
}

it("asks for usage without changing anything else", () => {
  expect(sent('{"model":"m","stream":true}')).toBe(
    '{"stream_options":{"include_usage":true},"model":"m","stream":true}',
  );
  expect(sent(' {\n "stream" : true }')).toBe(
    ' {"stream_options":{"include_usage":true},\n "stream" : true }',
  );
  expect(JSON.parse(sent('{"stream":true,"stream_options":{"x":1,"include_usage":false}}'))).toEqual({
    stream: true,
    stream_options: { x: 1, include_usage: true },
  });
  expect(JSON.parse(sent('{"stream":true,"stream_options":null}'))).toEqual({
    stream: true,
    stream_options: { include_usage: true },
  });
});

it("asks clouds that sign their requests, wherever the caller says that they are", () => {
  const signing = (slug: string, place?: { region: string; project: string }) => {
    const definition = BUILT_IN_PROVIDERS.find((one) => one.slug === slug);
    if (definition === undefined) throw new Error(slug);
    const answer = () => ({ pause: () => undefined, resume: () => undefined, abort: () => undefined });
    return createProvider(definition, { answer, ...(place === undefined ? {} : { place }) });
  };
  const body = { kind: "whole" as const, bytes: Buffer.from('{"stream":true}') };
  for (const place of [undefined, { region: "eu-west-1", project: "p" }]) {
    expect(requestStreamUsage(signing("aws-bedrock", place), "openai.gpt-oss-120b", body)).not.toBeNull();
    expect(requestStreamUsage(signing("google-vertex-ai", place), "meta/llama-4", body)).not.toBeNull();
  }
});

it("leaves providers alone that do not take the option", () => {
  expect(ask("{}", "mistral")).toBeNull();
  expect(ask("{}", "anthropic")).toBeNull();
});

const USAGE = '{"id":"c","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}';
const event = fc.oneof(
  fc.constantFrom(
    'data: {"choices":[{"delta":{"content":"Hi"}}],"usage":null}\n\n',
    'data: {"choices":[],"prompt_filter_results":[]}\n\n',
    'data: {"choices":[{"delta":{"content":"say \\"usage\\":{\\"prompt_tokens\\":1}"}}]}\n\n',
    'data: {"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}\n\n',
    ': comment with "prompt_tokens"\n\n',
    "event: x\r\ndata: {}\r\n\r\n",
    `data: {"choices":[{"delta":{"content":"${"long ".repeat(3000)}"}}]}\n\n`,
  ),
  fc.string().map((text) => `data: ${JSON.stringify({ choices: [{ delta: { content: text } }] })}\n\n`),
);

it("removes the event that it asked for, and passes every other byte on, however the stream is split", () => {
  fc.assert(
    fc.property(
      fc.array(event, { maxLength: 6 }),
      fc.constantFrom(`data: ${USAGE}\n\n`, `data:${USAGE}\r\n\r\n`),
      fc.array(event, { maxLength: 2 }),
      fc.array(fc.nat({ max: 400 }), { maxLength: 30 }),
      (before, usage, after, cuts) => {
        const stream = Buffer.from([...before, usage, ...after, "data: [DONE]\n\n"].join(""));
        const filter = ask("{}")?.filter(headOf("text/event-stream; charset=utf-8"));
        const passed: Buffer[] = [];
        let at = 0;
        for (const cut of cuts) {
          passed.push(filter?.push(stream.subarray(at, at + cut), false) ?? Buffer.alloc(0));
          at = Math.min(stream.length, at + cut);
        }
        passed.push(filter?.push(stream.subarray(at), true) ?? Buffer.alloc(0));
        expect(Buffer.concat(passed).toString()).toBe([...before, ...after, "data: [DONE]\n\n"].join(""));
      },
    ),
    { numRuns: 400 },
  );
});

it("does not touch a response that is not a stream", () => {
  expect(ask("{}")?.filter(headOf("application/json"))).toBeNull();
});

function headOf(contentType: string) {
  return { status: 200, statusText: "", rawHeaders: [], contentType };
}
