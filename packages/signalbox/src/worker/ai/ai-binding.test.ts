/** The binding against a server that records its calls. */
import { expect, test } from "vitest";
import type { OwnCall, OwnServer } from "../../contracts/own-server.ts";
import { AiBinding } from "./ai-binding.ts";
import { ModelNames } from "./model-names.ts";

function open(answer: unknown, agent: string | null = null, status = 200) {
  const calls: OwnCall[] = [];
  const server: OwnServer = {
    url: "http://here",
    async call(call) {
      calls.push(call);
      const body = typeof answer === "string" ? answer : JSON.stringify(answer);
      return new Response(body, { status, headers: { "gw-aig-log-id": "log1" } });
    },
  };
  const settings = {
    account: "default",
    gateway: "main",
    models: { "@cf/*": "openai/gpt", "@cf/exact": "groq/x/y" },
  };
  const bodyOf = (call: OwnCall | undefined) =>
    JSON.parse(Buffer.from(call?.body ?? []).toString()) as object;
  return { ai: new AiBinding(server, settings, () => agent), calls, body: () => bodyOf(calls[0]) };
}

const ANSWER = {
  choices: [
    {
      message: {
        content: null,
        tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: '{"a":1}' } }],
      },
    },
  ],
};

test("the most specific name applies, and a name with a provider needs no entry", () => {
  const names = new ModelNames({
    "@cf/*": "a/1",
    "@cf/meta/*": "b/2",
    "@cf/meta/x": "c/3",
    "fine.tuned*": "d/4",
  });
  expect(names.find("@cf/other")).toEqual({ provider: "a", model: "1" });
  expect(names.find("@cf/meta/y")).toEqual({ provider: "b", model: "2" });
  expect(names.find("@cf/meta/x")).toEqual({ provider: "c", model: "3" });
  expect(names.find("openai/gpt/5")).toEqual({ provider: "openai", model: "gpt/5" });
  for (const name of ["@hf/x", "plain", "/x", "x/", "fineXtuned"])
    expect(() => names.find(name)).toThrow(/agents\.ai\.models/);
});

test("inputs become a request of the provider's dialect", async () => {
  const { ai, calls, body } = open(ANSWER, "chat/room ü");
  const tool = { name: "f", description: "d", parameters: {} };
  await ai.run(
    "@cf/exact",
    { prompt: "hi", max_tokens: 5, tools: [tool], raw: true, seed: undefined },
    {
      gateway: { id: "other", skipCache: true, metadata: { agent: "claimed", user: 1 } },
      extraHeaders: { "X-A": "1" },
    },
  );
  expect(calls[0]).toMatchObject({ method: "POST", target: "/v1/default/other/groq/chat/completions" });
  expect(calls[0]?.headers).toMatchObject({ "x-a": "1", "gw-aig-skip-cache": "true" });
  const metadata = Buffer.from(calls[0]?.headers?.["gw-aig-metadata"] ?? "", "latin1").toString();
  expect(JSON.parse(metadata)).toEqual({ agent: "chat/room ü", user: 1 });
  expect(body()).toEqual({
    model: "x/y",
    max_tokens: 5,
    messages: [{ role: "user", content: "hi" }],
    tools: [{ type: "function", function: tool }],
  });
});

test("answers have the originals' form for their names, and the provider's for others", async () => {
  const original = (await open(ANSWER).ai.run("@cf/x", { messages: [] })) as Record<string, unknown>;
  expect(original).toMatchObject({
    response: "",
    tool_calls: [{ id: "c", name: "f", arguments: { a: 1 } }],
    ...ANSWER,
  });
  expect(await open(ANSWER).ai.run("openai/x", { messages: [] })).toEqual(ANSWER);
  const vectors = { data: [{ embedding: [1, 2] }, { embedding: [3, 4] }] };
  expect(await open(vectors).ai.run("@cf/x", { text: ["a", "b"] })).toMatchObject({
    shape: [2, 2],
    data: [
      [1, 2],
      [3, 4],
    ],
  });
});

test("a stream has each text once, whatever its pieces", async () => {
  const event = (delta: object) =>
    `data: ${JSON.stringify({ choices: [{ delta, finish_reason: null }] })}\n\n`;
  const text = `${event({ content: "Hé" })}${event({ content: "llo", tool_calls: [{ index: 0 }] })}: ping\n\ndata: {"usage":{"total_tokens":3},"choices":[]}\n\ndata: [DONE]\n\n`;
  const stream = (await open(text).ai.run("@cf/x", { prompt: "x", stream: true })) as ReadableStream;
  const lines = (await new Response(stream).text()).split("\n").filter((line) => line !== "");
  expect(
    lines.map((line) => (line.startsWith("data: {") ? (JSON.parse(line.slice(6)) as unknown) : line)),
  ).toEqual([
    { choices: [{ delta: {}, finish_reason: null }], response: "Hé" },
    { choices: [{ delta: {}, finish_reason: null }], response: "llo", tool_calls: [{ index: 0 }] },
    ": ping",
    { usage: { total_tokens: 3 }, choices: [], response: "" },
    "data: [DONE]",
  ]);
});

test("a refusal is an error with the status, the code and the id of the call", async () => {
  const { ai } = open({ error: { message: "no" } }, null, 403);
  await expect(ai.run("@cf/x", { prompt: "x" })).rejects.toMatchObject({
    message: "5018: 403 no",
    status: 403,
    logId: "log1",
  });
  expect(ai.aiGatewayLogId).toBe("log1");
  const raw = (await ai.run("@cf/x", { prompt: "x" }, { returnRawResponse: true })) as Response;
  expect([raw.status, raw.headers.get("cf-aig-log-id")]).toEqual([403, "log1"]);
});

test("the stream of a raw response can be read again by the id of its run", async () => {
  const { ai, calls } = open("data: 1\n\n");
  await ai.run("openai/gpt", { messages: [], stream: true }, { returnRawResponse: true });
  await ai.run("openai/gpt", { messages: [], stream: true });
  expect(calls.map(({ headers }) => headers?.["gw-aig-resumable"])).toEqual(["true", undefined]);
  const resumed = await ai.fetch("https://workers-binding.ai/ai-gateway/gateways/g/run/r-1/resume?from=3");
  expect(await resumed.text()).toBe("data: 1\n\n");
  expect(calls.at(-1)).toMatchObject({ method: "GET", target: "/v1/default/g/run/r-1/resume?from=3" });
  await expect(ai.fetch("https://workers-binding.ai/anything")).rejects.toThrow("not available");
});
