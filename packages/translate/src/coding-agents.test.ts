/** Requests in the patterns of coding agents in wide use, to upstreams of the other dialects, and the answers. */
import { describe, expect, it } from "vitest";
import { createStreamTranslator, translateResponse } from "./index.ts";
import { payloads, sse, translate } from "./translate-fixture.ts";

const cached = { type: "ephemeral" };

/** Messages with betas: system blocks and cache marks, thinking, results beside text, server tools, many settings. */
const CLAUDE_CODE = {
  model: "claude-opus-5",
  max_tokens: 32_000,
  stream: true,
  temperature: 1,
  system: [
    { type: "text", text: "You are a coding agent." },
    { type: "text", text: "Rules of the project", cache_control: { type: "ephemeral", ttl: "1h" } },
  ],
  thinking: { type: "adaptive" },
  output_config: { effort: "high" },
  context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
  metadata: { user_id: "user_1_session_2" },
  tools: [
    {
      name: "Read",
      description: "Reads a file",
      input_schema: { type: "object", properties: { file_path: { type: "string" } } },
    },
    {
      name: "Bash",
      description: "Runs a command",
      input_schema: { type: "object", properties: {} },
      cache_control: cached,
    },
    { type: "web_search_20250305", name: "web_search", max_uses: 8 },
  ],
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: "<system-reminder>Date</system-reminder>" },
        { type: "text", text: "Fix the bug" },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Look first", signature: "SIG" },
        { type: "text", text: "I look." },
        { type: "tool_use", id: "toolu_1", name: "Read", input: { file_path: "a.ts" } },
        { type: "tool_use", id: "toolu_2", name: "Bash", input: {} },
      ],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "text", text: "1: let a" }] },
        { type: "tool_result", tool_use_id: "toolu_2", content: "exit 1", is_error: true },
        { type: "text", text: "<system-reminder>Careful</system-reminder>", cache_control: cached },
      ],
    },
  ],
};

/** Responses without storage: developer messages, encrypted reasoning, a custom tool, a hosted one, a namespace. */
const CODEX = {
  model: "gpt-5-codex",
  instructions: "You are a coding agent.",
  input: [
    { type: "message", role: "developer", content: [{ type: "input_text", text: "Sandbox: read only" }] },
    { type: "message", role: "user", content: [{ type: "input_text", text: "<environment_context/>" }] },
    { type: "message", role: "user", content: [{ type: "input_text", text: "Fix the bug" }] },
    { type: "reasoning", summary: [], content: null, encrypted_content: "messages::SIG" },
    { type: "function_call", name: "shell", arguments: '{"command":["ls"]}', call_id: "call_1" },
    { type: "function_call_output", call_id: "call_1", output: "a.ts" },
    {
      type: "custom_tool_call",
      status: "completed",
      call_id: "call_2",
      name: "apply_patch",
      input: "*** Begin Patch",
    },
    { type: "custom_tool_call_output", call_id: "call_2", output: "Done" },
  ],
  tools: [
    {
      type: "function",
      name: "shell",
      description: "Runs",
      strict: false,
      parameters: { type: "object", properties: {} },
    },
    {
      type: "custom",
      name: "apply_patch",
      description: "Edits",
      format: { type: "grammar", syntax: "lark", definition: "start: x" },
    },
    { type: "web_search" },
    {
      type: "namespace",
      name: "mcp__docs",
      description: "",
      tools: [{ type: "function", name: "search", parameters: { type: "object" } }],
    },
  ],
  tool_choice: "auto",
  parallel_tool_calls: false,
  reasoning: { effort: "medium", summary: "auto" },
  store: false,
  stream: true,
  include: ["reasoning.encrypted_content"],
  prompt_cache_key: "session",
  client_metadata: { x: "y" },
  text: { verbosity: "medium" },
};

describe("Claude Code", () => {
  it("reaches chat completions without a refusal, and what is left out is listed", () => {
    const { body, dropped, stream } = translate("messages", "chat", CLAUDE_CODE);
    expect(stream).toBe(true);
    expect([...dropped].sort()).toEqual(
      ["tools.web_search_20250305", "context_management", "cache_control", "messages[].reasoning"].sort(),
    );
    expect(body).toMatchObject({
      model: "gpt-5",
      stream: true,
      stream_options: { include_usage: true },
      max_completion_tokens: 32_000,
      reasoning_effort: "high",
      safety_identifier: "user_1_session_2",
    });
    expect((body["messages"] as { role: string }[]).map((message) => message.role)).toEqual([
      "system",
      "user",
      "assistant",
      "tool",
      "tool",
      "user",
    ]);
    expect(body).not.toHaveProperty("temperature");
  });

  it.each(["responses", "gemini"] as const)("reaches %s without a refusal", (to) => {
    const { body, dropped } = translate("messages", to, CLAUDE_CODE);
    expect(dropped).toContain("tools.web_search_20250305");
    expect(JSON.stringify(body)).toContain("Fix the bug");
    expect(JSON.stringify(body)).toContain("exit 1");
    expect(JSON.stringify(body)).not.toContain("SIG");
  });

  it("reads calls of the upstream as its own", () => {
    const { context } = translate("messages", "responses", CLAUDE_CODE);
    const translator = createStreamTranslator(context);
    const item = {
      id: "fc_1",
      type: "function_call",
      call_id: "call_9",
      name: "Read",
      arguments: '{"file_path":"b.ts"}',
    };
    const upstream = sse(
      [
        { type: "response.created", response: { id: "resp_1", model: "gpt-5" } },
        { type: "response.output_item.added", output_index: 0, item: { ...item, arguments: "" } },
        { type: "response.output_item.done", output_index: 0, item },
        {
          type: "response.completed",
          response: { status: "completed", usage: { input_tokens: 3, output_tokens: 2 } },
        },
      ],
      true,
    );
    const events = payloads(
      translator.begin() + translator.write(new TextEncoder().encode(upstream)) + translator.end(),
    );
    expect(events.map((event) => event["type"])).toEqual([
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
    ]);
    expect(events[1]).toMatchObject({ content_block: { type: "tool_use", id: "call_9", name: "Read" } });
  });
});

describe("Codex", () => {
  it("reaches messages without a refusal, and its reasoning comes back to its maker", () => {
    const { body, dropped } = translate("responses", "messages", CODEX);
    expect(dropped).toEqual(["client_metadata", "tools.web_search", "prompt_cache_key"]);
    expect(body["system"]).toEqual([
      { type: "text", text: "You are a coding agent." },
      { type: "text", text: "Sandbox: read only" },
    ]);
    expect(body["messages"]).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "<environment_context/>" },
          { type: "text", text: "Fix the bug" },
        ],
      },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "", signature: "SIG" },
          { type: "tool_use", id: "call_1", name: "shell", input: { command: ["ls"] } },
        ],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: "a.ts" }] },
      {
        role: "assistant",
        content: [
          { type: "tool_use", id: "call_2", name: "apply_patch", input: { input: "*** Begin Patch" } },
        ],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "call_2", content: "Done" }] },
    ]);
    expect((body["tools"] as { name: string }[]).map((tool) => tool.name)).toEqual([
      "shell",
      "apply_patch",
      "mcp__docs__search",
    ]);
    expect(body["tool_choice"]).toEqual({ type: "auto", disable_parallel_tool_use: true });
  });

  it.each(["chat", "gemini"] as const)("reaches %s without a refusal", (to) => {
    const { body } = translate("responses", to, CODEX);
    expect(JSON.stringify(body)).toContain("*** Begin Patch");
    expect(JSON.stringify(body)).not.toContain("SIG");
  });

  it("gets custom calls, calls of namespaces and signed reasoning back in its own items", () => {
    const { context } = translate("responses", "messages", CODEX);
    const response = translateResponse(context, {
      id: "msg_1",
      model: "claude",
      content: [
        { type: "thinking", thinking: "Think", signature: "SIG2" },
        { type: "tool_use", id: "toolu_1", name: "apply_patch", input: { input: "*** End" } },
        { type: "tool_use", id: "toolu_2", name: "mcp__docs__search", input: { q: 1 } },
      ],
      stop_reason: "tool_use",
      usage: { input_tokens: 1, output_tokens: 1 },
    });
    expect(response["output"]).toMatchObject([
      { type: "reasoning", summary: [{ text: "Think" }], encrypted_content: "messages::SIG2" },
      { type: "custom_tool_call", call_id: "toolu_1", name: "apply_patch", input: "*** End" },
      {
        type: "function_call",
        call_id: "toolu_2",
        name: "search",
        namespace: "mcp__docs",
        arguments: '{"q":1}',
      },
    ]);
    expect(response).toMatchObject({ status: "completed", store: false, parallel_tool_calls: false });
  });

  it("adds tools that an item of the input defines", () => {
    const input = [
      {
        type: "additional_tools",
        role: "developer",
        tools: [{ type: "function", name: "late", parameters: { type: "object" } }],
      },
    ];
    const { body } = translate("responses", "chat", { model: "m", input, tools: [] });
    expect(body["tools"]).toMatchObject([{ function: { name: "late" } }]);
  });
});

describe("a session that Gemini CLI resumes", () => {
  const call = (id: string) => ({ functionCall: { id, name: "read_file", args: { file_path: id } } });
  const response = (id: string, output: string) => ({
    functionResponse: { id, name: "read_file", response: { output } },
  });
  const contents = [
    { role: "user", parts: [{ text: "Read both" }] },
    { role: "model", parts: [call("a"), call("b")] },
    // Each response twice, as Gemini CLI 0.61.0 sends them.
    { role: "user", parts: ["a", "b"].map((id) => response(id, `text of ${id}`)) },
    { role: "user", parts: ["a", "b"].map((id) => response(id, `text of ${id}`)) },
    { role: "model", parts: [{ text: "Done" }] },
    { role: "user", parts: [{ text: "Go on" }] },
  ];

  it("has one result for each call, because other providers reject a second one", () => {
    const { body, dropped } = translate("gemini", "messages", { contents });
    expect((body["messages"] as object[])[2]).toEqual({
      role: "user",
      content: ["a", "b"].map((id) => ({
        type: "tool_result",
        tool_use_id: id,
        content: `text of ${id}`,
      })),
    });
    expect(dropped).toEqual(["contents[].parts[].functionResponse"]);
    const chat = translate("gemini", "chat", { contents }).body["messages"] as { role: string }[];
    expect(chat.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "tool", "assistant", "user"]);
  });

  it("has the results of all calls that share an id", () => {
    const same = [
      { role: "user", parts: [{ text: "Read both" }] },
      { role: "model", parts: [call("x"), call("x")] },
      { role: "user", parts: [response("x", "one"), response("x", "two")] },
    ];
    const { body } = translate("gemini", "messages", { contents: same });
    expect((body["messages"] as { content: unknown }[])[2]?.content).toMatchObject([
      { content: "one" },
      { content: "two" },
    ]);
  });
});
