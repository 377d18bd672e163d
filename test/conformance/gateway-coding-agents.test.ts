/**
 * The requests of coding agents, in the form in which Claude Code 2.1.325 and Codex 0.166.0 sent them to a gateway, through the doors to
 * providers of other dialects. Each test is a turn with a tool: the call of the tool, and the request with its result.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ProviderAnswer, type ProviderPeer, sendEvents, startProvider } from "../peers/provider.ts";
import { send } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let chat: ProviderPeer;
let claude: ProviderPeer;
let gemini: ProviderPeer;
let server: TestServer;
let token: string;

const SLUGS = ["groq", "anthropic", "google-ai-studio"];
const COMMAND = "echo done > made.txt";
const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
const event = (type: string, rest: object = {}) => `event: ${type}\n${data({ type, ...rest })}`;

/** The first request gets a call of the tool, one with a result gets text. */
const asChat: ProviderAnswer = async ({ body }, response) => {
  const { messages, tools } = JSON.parse(body) as {
    messages: { role: string }[];
    tools: { function: { name: string } }[];
  };
  const chunk = (delta: object, finish_reason: string | null = null) =>
    data({
      id: "c1",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      choices: [{ index: 0, delta, finish_reason }],
    });
  const part = (text: string) =>
    chunk({
      tool_calls: [
        { index: 0, ...(text === "" ? OPENING : {}), function: { ...nameIf(text), arguments: text } },
      ],
    });
  const nameIf = (text: string) => (text === "" ? { name: tools[0]?.function.name } : {});
  const [start, end] = [ARGUMENTS.slice(0, 5), ARGUMENTS.slice(5)];
  const hasResult = messages.some(({ role }) => role === "tool");
  await sendEvents(response, [
    chunk({ role: "assistant", content: hasResult ? "All done." : "I run it." }),
    ...(hasResult ? [chunk({}, "stop")] : [part(""), part(start), part(end), chunk({}, "tool_calls")]),
    data({ id: "c1", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage: USAGE }),
    "data: [DONE]\n\n",
  ]);
};
const OPENING = { id: "call_1", type: "function" };
const ARGUMENTS = JSON.stringify({ command: COMMAND });
const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

const asClaude: ProviderAnswer = async ({ body }, response) => {
  const { tools } = JSON.parse(body) as { tools: { name: string }[] };
  const blocks: readonly [object, object[]][] = body.includes('"tool_result"')
    ? [[{ type: "text", text: "" }, [{ type: "text_delta", text: "All done." }]]]
    : [
        [
          { type: "thinking", thinking: "", signature: "" },
          [
            { type: "thinking_delta", thinking: "Let me see" },
            { type: "signature_delta", signature: "c2lnbmF0dXJl" },
          ],
        ],
        [
          { type: "tool_use", id: "toolu_1", name: tools[0]?.name, input: {} },
          [{ type: "input_json_delta", partial_json: ARGUMENTS }],
        ],
      ];
  const usage = { input_tokens: 20, output_tokens: 1 };
  const message = { id: "m", type: "message", role: "assistant", model: "c", content: [], usage };
  await sendEvents(response, [
    event("message_start", { message: { ...message, stop_reason: null, stop_sequence: null } }),
    ...blocks.flatMap(([content_block, deltas], index) => [
      event("content_block_start", { index, content_block }),
      ...deltas.map((delta) => event("content_block_delta", { index, delta })),
      event("content_block_stop", { index }),
    ]),
    event("message_delta", {
      delta: { stop_reason: blocks.length === 1 ? "end_turn" : "tool_use" },
      usage: { output_tokens: 6 },
    }),
    event("message_stop"),
  ]);
};

const asGemini: ProviderAnswer = async ({ body }, response) => {
  const { tools } = JSON.parse(body) as { tools: { functionDeclarations: { name: string }[] }[] };
  const name = tools[0]?.functionDeclarations[0]?.name;
  const part = body.includes('"functionResponse"')
    ? { text: "All done." }
    : { functionCall: { name, args: { command: COMMAND } }, thoughtSignature: "c2ln" };
  await sendEvents(response, [
    data({
      candidates: [{ index: 0, finishReason: "STOP", content: { role: "model", parts: [part] } }],
      usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 3, totalTokenCount: 12 },
    }),
  ]);
};

beforeAll(async () => {
  [chat, claude, gemini] = (await Promise.all(
    [asChat, asClaude, asGemini].map((answer) => startProvider(answer)),
  )) as [ProviderPeer, ProviderPeer, ProviderPeer];
  server = await startTestServer({
    file: {
      gateway: { models: { "claude-*": "groq/llama-4", "gpt-5*": "anthropic/claude-opus-5" } },
      providers: {
        groq: { baseUrl: `${chat.url}/v1`, dialects: ["chat"] },
        anthropic: { baseUrl: claude.url },
        "google-ai-studio": { baseUrl: gemini.url },
      },
    },
    environment: Object.fromEntries(SLUGS.map((slug) => [secretOf(slug), "sk-stored"])),
  });
  await server.api("PUT", "/accounts/default/ai-gateway/gateways/default", { authentication: true });
  for (const slug of SLUGS) {
    await server.api("POST", "/accounts/default/ai-gateway/gateways/default/provider_configs", {
      provider_slug: slug,
      alias: "default",
      default_config: true,
      secret_id: secretOf(slug),
    });
  }
  token = await server.token(["gateway.run"]);
});
beforeEach(() => {
  for (const peer of [chat, claude, gemini]) peer.requests.length = 0;
});
afterAll(async () => {
  await server.stop();
  for (const peer of [chat, claude, gemini]) await peer.close();
});

function secretOf(slug: string): string {
  return `${slug.toUpperCase().replaceAll("-", "_")}_API_KEY`;
}

type Fields = Record<string, unknown>;

async function ask(path: string, headers: Record<string, string>, body: object) {
  const answer = await send(server, "POST", path, {
    body: JSON.stringify(body),
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
  });
  expect([answer.status, answer.body.slice(0, 200)]).toEqual([200, expect.stringMatching(/^event: /)]);
  const events = [...answer.body.matchAll(/^data: (.*)$/gm)].map(
    ([, text]) => JSON.parse(text ?? "") as Fields,
  );
  return { events, dropped: String(answer.headers["gw-aig-dropped"]).split(",").toSorted() };
}

function lastRequest({ requests }: ProviderPeer): { readonly body: Fields; readonly headers: string } {
  const { body, headers } = requests.at(-1) ?? { body: "{}", headers: {} };
  return { body: JSON.parse(body) as Fields, headers: JSON.stringify(headers) };
}

/** The text of one member of all deltas. */
function joinDeltas(events: readonly Fields[], name: string): string {
  const parts = events.map(({ delta }) => (delta as Fields | undefined)?.[name]);
  return parts.filter((part) => typeof part === "string").join("");
}

describe("Claude Code", () => {
  const cache_control = { type: "ephemeral" };
  const tool = (name: string, more: object = {}) => ({
    name,
    description: name,
    input_schema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: { command: { type: "string" } },
      required: ["command"],
      additionalProperties: false,
    },
    ...more,
  });
  const headers = {
    accept: "application/json",
    "user-agent": "claude-cli/2.1.325 (external, sdk-cli)",
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14,advanced-tool-use-2025-11-20",
    "anthropic-dangerous-direct-browser-access": "true",
    "x-claude-code-session-id": "7f47bc25-14b2-4da8-ba93-9d9b377ee86b",
    "x-stainless-retry-count": "0",
    "x-app": "cli",
  };
  const request = (model: string) => ({
    model,
    max_tokens: 32_000,
    stream: true,
    thinking: { type: "adaptive", display: "omitted" },
    output_config: { effort: "high" },
    context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
    metadata: { user_id: JSON.stringify({ device_id: "d".repeat(64), account_uuid: "", session_id: "s" }) },
    system: [
      { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.325;" },
      { type: "text", text: "You are an agent.", cache_control },
    ],
    tools: [tool("Bash"), tool("Later", { defer_loading: true })],
  });
  const question = [
    {
      role: "user",
      content: [
        { type: "text", text: "<system-reminder>Be brief</system-reminder>" },
        { type: "text", text: "Make the file." },
      ],
    },
    // A system message within the conversation.
    { role: "system", content: [{ type: "text", text: "# Environment", cache_control }] },
  ];

  it.each([
    ["claude-opus-5", () => chat],
    ["groq/llama-4", () => chat],
    ["google/gemini-3-pro", () => gemini],
  ] as const)("runs a tool with %s", async (model, peerOf) => {
    const first = await ask("/v1/messages?beta=true", headers, { ...request(model), messages: question });
    expect(first.dropped).toEqual(expect.arrayContaining(["context_management", "metadata.user_id"]));
    expect(first.events.at(0)?.["type"]).toBe("message_start");
    expect(first.events.at(-1)?.["type"]).toBe("message_stop");
    const blocks = first.events.flatMap(({ content_block: block }) =>
      block === undefined ? [] : [block as Fields],
    );
    const call = blocks.find(({ type }) => type === "tool_use");
    const json = joinDeltas(first.events, "partial_json");
    expect([call?.["name"], JSON.parse(json)]).toEqual(["Bash", { command: COMMAND }]);
    expect(first.events.at(-2)).toMatchObject({ type: "message_delta", delta: { stop_reason: "tool_use" } });

    const thinking = blocks
      .filter(({ type }) => type === "thinking")
      .map((block) => withSignature(block, first.events));
    const second = await ask("/v1/messages?beta=true", headers, {
      ...request(model),
      messages: [
        ...question,
        { role: "assistant", content: [...thinking, { ...call, input: { command: COMMAND } }] },
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: call?.["id"],
              content: "done",
              is_error: false,
              cache_control,
            },
            { type: "text", text: "<system-reminder>Keep going</system-reminder>" },
          ],
        },
      ],
    });
    expect(JSON.stringify(second.events)).toContain("All done.");
    const { body, headers: sent } = lastRequest(peerOf());
    expect(JSON.stringify(body)).not.toMatch(/cache_control|defer_loading|context_management|device_id/);
    expect(sent).not.toMatch(/anthropic|x-claude-code|x-stainless|x-app/);
    if (peerOf() === chat) {
      expect((body["messages"] as Fields[]).map(({ role }) => role)).toEqual([
        "system",
        "user",
        "system",
        "assistant",
        "tool",
        "user",
      ]);
    } else {
      const contents = JSON.stringify(body["contents"]);
      expect(contents).toContain('"functionResponse"');
      expect(contents).toContain('"thoughtSignature":"c2ln"');
    }
  });

  /** The block as the client keeps it: with the text and the signature of its deltas. */
  function withSignature(block: Fields, events: readonly Fields[]): Fields {
    return {
      ...block,
      thinking: joinDeltas(events, "thinking"),
      signature: joinDeltas(events, "signature"),
    };
  }
});

describe("Codex", () => {
  const headers = {
    accept: "text/event-stream",
    originator: "codex_exec",
    "user-agent": "codex_exec/0.166.0 (Debian 12.0.0; aarch64)",
    "session-id": "01a1e28f-8e34-7001-b694-2eb64aa0f654",
    "thread-id": "01a1e28f-8e34-7001-b694-2eb64aa0f654",
    "x-codex-turn-metadata": '{"sandbox":"none"}',
    "x-codex-window-id": "01a1e28f:0",
  };
  const parameters = {
    type: "object",
    properties: { command: { type: "string" } },
    required: ["command"],
    additionalProperties: false,
  };
  const definition = (name: string) => ({
    type: "function",
    name,
    description: name,
    strict: false,
    parameters,
  });
  const text = (role: string, value: string) => ({
    type: "message",
    role,
    id: `msg_${role}`,
    content: [{ type: "input_text", text: value }],
  });
  const request = (model: string, input: unknown[]) => ({
    model,
    stream: true,
    store: false,
    input: [
      text("developer", "You are a coding agent."),
      text("user", "<environment_context/>"),
      text("user", "Make it."),
      ...input,
    ],
    tools: [
      definition("exec_command"),
      {
        type: "custom",
        name: "apply_patch",
        description: "Edits files",
        format: { type: "grammar", syntax: "lark", definition: "start: patch" },
      },
      { type: "namespace", name: "agents", description: "Sub-agents", tools: [definition("spawn_agent")] },
      { type: "web_search", external_web_access: true },
    ],
    tool_choice: "auto",
    parallel_tool_calls: true,
    reasoning: { summary: "auto" },
    include: ["reasoning.encrypted_content"],
    prompt_cache_key: "01a1e28f",
    client_metadata: { session_id: "01a1e28f" },
  });

  it.each([
    ["gpt-5.3-codex", () => claude],
    ["anthropic/claude-opus-5", () => claude],
    ["groq/llama-4", () => chat],
    ["google/gemini-3-pro", () => gemini],
  ] as const)("runs a tool with %s", async (model, peerOf) => {
    const first = await ask("/v1/responses", headers, request(model, []));
    expect(first.dropped).toContain("client_metadata");
    // Claude searches the web; the others do not, or not beside tools of the client.
    if (peerOf() === claude)
      expect(JSON.stringify(lastRequest(claude).body)).toContain("web_search_20250305");
    else expect(first.dropped).toContain("tools.web_search");
    expect(first.events.map((_, i) => i)).toEqual(first.events.map((own) => own["sequence_number"]));
    const { response } = first.events.at(-1) as { response: { status: string; output: Fields[] } };
    expect(response.status).toBe("completed");
    const call = response.output.find(({ type }) => type === "function_call");
    expect([call?.["name"], JSON.parse(String(call?.["arguments"]))]).toEqual([
      "exec_command",
      { command: COMMAND },
    ]);

    const result = { type: "function_call_output", id: "fco_1", call_id: call?.["call_id"], output: "done" };
    const second = await ask("/v1/responses", headers, request(model, [...response.output, result]));
    expect(JSON.stringify(second.events.at(-1))).toContain("All done.");
    const { body, headers: sent } = lastRequest(peerOf());
    expect(sent).not.toMatch(/codex-|originator|session-id|thread-id/);
    const whole = JSON.stringify(body);
    expect(whole).toMatch(/agents__spawn_agent/);
    expect(whole).toMatch(/apply_patch/);
    // The reasoning of the first answer has come back with its signature.
    if (peerOf() === claude) expect(whole).toContain('"signature":"c2lnbmF0dXJl"');
    if (peerOf() === gemini) expect(whole).toContain('"thoughtSignature":"c2ln"');
  });
});
