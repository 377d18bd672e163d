/** Rules of the way from messages to chat completions. Each stands for a defect seen in another translator. */
import { describe, expect, it } from "vitest";
import { translate } from "./translate-fixture.ts";

const user = { role: "user", content: "Hi" };
const toolUse = (id: string) => ({ type: "tool_use", id, name: "read", input: { path: "a" } });
const called = (id: string) => ({
  id,
  type: "function",
  function: { name: "read", arguments: '{"path":"a"}' },
});

function encode(body: Record<string, unknown>, given = {}) {
  return translate("messages", "chat", { model: "m", max_tokens: 100, messages: [user], ...body }, given);
}

describe("blocks of a messages request for chat completions", () => {
  it("sends tool results beside text as tool messages, then the text", () => {
    const messages = [
      user,
      { role: "assistant", content: [{ type: "text", text: "Reading" }, toolUse("a"), toolUse("b")] },
      {
        role: "user",
        content: [
          { type: "text", text: "<system-reminder>Be careful</system-reminder>" },
          { type: "tool_result", tool_use_id: "a", content: "one" },
          {
            type: "tool_result",
            tool_use_id: "b",
            content: [
              { type: "text", text: "two" },
              { type: "text", text: "three" },
            ],
          },
          { type: "text", text: "Go on" },
        ],
      },
    ];
    expect(encode({ messages }).body["messages"]).toEqual([
      user,
      { role: "assistant", content: "Reading", tool_calls: [called("a"), called("b")] },
      { role: "tool", tool_call_id: "a", content: "one" },
      { role: "tool", tool_call_id: "b", content: "two\nthree" },
      {
        role: "user",
        content: [
          { type: "text", text: "<system-reminder>Be careful</system-reminder>" },
          { type: "text", text: "Go on" },
        ],
      },
    ]);
  });

  it("moves images of a tool result into the user message that follows", () => {
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } };
    const messages = [
      user,
      { role: "assistant", content: [toolUse("a")] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a", content: [{ type: "text", text: "shot" }, image] },
        ],
      },
    ];
    expect((encode({ messages }).body["messages"] as unknown[]).slice(2)).toEqual([
      { role: "tool", tool_call_id: "a", content: "shot" },
      { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }] },
    ]);
  });

  it("marks a failed tool result in its text", () => {
    const messages = [
      user,
      { role: "assistant", content: [toolUse("a")] },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "a", content: "no such file", is_error: true }],
      },
    ];
    expect((encode({ messages }).body["messages"] as unknown[])[2]).toEqual({
      role: "tool",
      tool_call_id: "a",
      content: "Error: no such file",
    });
  });

  it("sends thinking to upstreams that take it and leaves it out for others, listed", () => {
    const content = [
      { type: "thinking", thinking: "Hmm", signature: "SIG" },
      { type: "redacted_thinking", data: "XXX" },
      { type: "text", text: "Yes" },
    ];
    const messages = [user, { role: "assistant", content }, user];
    const plain = encode({ messages });
    expect((plain.body["messages"] as unknown[])[1]).toEqual({ role: "assistant", content: "Yes" });
    expect(plain.dropped).toEqual(["messages[].reasoning"]);
    const taken = encode({ messages }, { traits: { takesReasoningContent: true } });
    expect((taken.body["messages"] as unknown[])[1]).toEqual({
      role: "assistant",
      content: "Yes",
      reasoning_content: "Hmm",
      reasoning_details: [
        { type: "reasoning.text", text: "Hmm", signature: "SIG", format: "anthropic-claude-v1", index: 0 },
        { type: "reasoning.encrypted", data: "XXX", format: "anthropic-claude-v1", index: 1 },
      ],
    });
    expect(taken.dropped).toEqual([]);
  });

  it("removes cache marks for upstreams that reject them, listed, and keeps them for others", () => {
    const cached = { type: "text", text: "Long", cache_control: { type: "ephemeral" } };
    const request = {
      system: [cached],
      messages: [{ role: "user", content: [cached] }],
      tools: [{ name: "read", input_schema: { type: "object" }, cache_control: { type: "ephemeral" } }],
    };
    const plain = encode(request);
    expect(JSON.stringify(plain.body)).not.toContain("cache_control");
    expect(plain.dropped).toEqual(["cache_control"]);
    const kept = encode(request, { traits: { takesCacheControl: true } });
    expect(JSON.stringify(kept.body).match(/cache_control/g)).toHaveLength(3);
    expect(kept.dropped).toEqual([]);
    const breakpoints = encode({ messages: request.messages }, { traits: { takesCacheBreakpoints: true } });
    expect(breakpoints.body["messages"]).toEqual([
      {
        role: "user",
        content: [{ type: "text", text: "Long", prompt_cache_breakpoint: { mode: "explicit" } }],
      },
    ]);
  });

  it("joins system blocks into one text", () => {
    const system = [
      { type: "text", text: "A" },
      { type: "text", text: "B" },
    ];
    expect((encode({ system }).body["messages"] as unknown[])[0]).toEqual({
      role: "system",
      content: "A\n\nB",
    });
  });

  it("sends documents as files, texts and links", () => {
    const content = [
      {
        type: "document",
        title: "a.pdf",
        source: { type: "base64", media_type: "application/pdf", data: "AAAA" },
      },
      { type: "document", title: "note", source: { type: "text", media_type: "text/plain", data: "T" } },
    ];
    expect(encode({ messages: [{ role: "user", content }] }).body["messages"]).toEqual([
      {
        role: "user",
        content: [
          { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,AAAA" } },
          { type: "text", text: "note:\nT" },
        ],
      },
    ]);
  });
});

describe("settings of a messages request for chat completions", () => {
  it("gives the user id as safety identifier", () => {
    expect(encode({ metadata: { user_id: "u" } }).body["safety_identifier"]).toBe("u");
    const long = encode({ metadata: { user_id: "u".repeat(65) } });
    expect(long.body["safety_identifier"]).toBeUndefined();
    expect(long.dropped).toContain("metadata.user_id");
  });

  it("leaves out top_k, listed", () => {
    const { body, dropped } = encode({ top_k: 40 });
    expect(body).not.toHaveProperty("top_k");
    expect(dropped).toEqual(["top_k"]);
  });

  it.each([
    [{ type: "any" }, "required"],
    [{ type: "none" }, "none"],
    [{ type: "auto" }, "auto"],
    [
      { type: "tool", name: "read" },
      { type: "function", function: { name: "read" } },
    ],
  ])("translates tool_choice %j", (choice, expected) => {
    const tools = [{ name: "read", input_schema: { type: "object" } }];
    expect(encode({ tools, tool_choice: choice }).body["tool_choice"]).toEqual(expected);
  });

  it("turns disable_parallel_tool_use around", () => {
    const tools = [{ name: "read", input_schema: { type: "object" } }];
    const tool_choice = { type: "auto", disable_parallel_tool_use: true };
    expect(encode({ tools, tool_choice }).body["parallel_tool_calls"]).toBe(false);
  });

  it("asks for usage in streams, unless the provider does not know the option", () => {
    expect(encode({ stream: true }).body["stream_options"]).toEqual({ include_usage: true });
    expect(encode({ stream: true }, { traits: { streamUsage: false } }).body).not.toHaveProperty(
      "stream_options",
    );
  });

  it("names the output limit as the model's provider does", () => {
    expect(encode({}).body["max_completion_tokens"]).toBe(100);
    expect(encode({}, { model: "llama-3.3-70b" }).body["max_tokens"]).toBe(100);
  });

  it("translates thinking into an effort, and lists it for models that do not reason", () => {
    const thinking = { type: "enabled", budget_tokens: 20_000 };
    expect(encode({ thinking }).body["reasoning_effort"]).toBe("high");
    const none = encode({ thinking }, { model: "gpt-4o" });
    expect(none.body).not.toHaveProperty("reasoning_effort");
    expect(none.dropped).toEqual(["thinking"]);
    expect(encode({ thinking: { type: "disabled" } }).body).not.toHaveProperty("reasoning_effort");
    const adaptive = { thinking: { type: "adaptive" }, output_config: { effort: "max" } };
    expect(encode(adaptive, { model: "gpt-5.6" }).body["reasoning_effort"]).toBe("max");
    const clamped = encode(adaptive);
    expect(clamped.body["reasoning_effort"]).toBe("high");
    expect(clamped.dropped).toEqual(["thinking"]);
  });

  it("leaves the effort out beside tools for models that reject the pair, listed", () => {
    const request = {
      thinking: { type: "enabled", budget_tokens: 2000 },
      tools: [{ name: "f", input_schema: { type: "object" } }],
    };
    const { body, dropped } = encode(request, { model: "gpt-5.4-mini" });
    expect(body).not.toHaveProperty("reasoning_effort");
    expect(dropped).toEqual(["thinking"]);
    expect(encode(request, { model: "gpt-5.2" }).body["reasoning_effort"]).toBe("low");
  });

  it("translates the output format", () => {
    const schema = { type: "object", properties: {} };
    expect(
      encode({ output_config: { format: { type: "json_schema", schema } } }).body["response_format"],
    ).toEqual({
      type: "json_schema",
      json_schema: { name: "response", schema, strict: true },
    });
  });

  it("leaves out tools that the provider runs itself, listed, and keeps the others", () => {
    const tools = [
      { type: "web_search_20250305", name: "web_search" },
      { name: "read", input_schema: { type: "object" } },
    ];
    const { body, dropped } = encode({ tools });
    expect(body["tools"]).toEqual([
      { type: "function", function: { name: "read", parameters: { type: "object" } } },
    ]);
    expect(dropped).toEqual(["tools.web_search_20250305"]);
  });

  it("refuses a request that offers only tools that the provider runs, unless none may be called", () => {
    const tools = [{ type: "web_search_20250305", name: "web_search" }];
    expect(() => encode({ tools })).toThrow(expect.objectContaining({ field: "tools" }));
    expect(encode({ tools, tool_choice: { type: "none" } }).dropped).toEqual(["tools.web_search_20250305"]);
    expect(encode({ tools }, { dropUnsupported: true }).dropped).toContain("tools.web_search_20250305");
  });

  it("refuses a choice of a tool that was left out", () => {
    const tools = [{ type: "web_search_20250305", name: "web_search" }];
    for (const tool_choice of [{ type: "tool", name: "web_search" }, { type: "any" }]) {
      expect(() => encode({ tools, tool_choice })).toThrow(expect.objectContaining({ field: "tool_choice" }));
    }
  });

  it("shortens tool names that are too long, and answers with the client's name", () => {
    const name = `mcp__server__${"x".repeat(80)}`;
    const { body, context } = encode({ tools: [{ name, input_schema: { type: "object" } }] });
    const short = (body["tools"] as { function: { name: string } }[])[0]?.function.name ?? "";
    expect(short).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    expect(context.renamedTools.get(short)?.name).toBe(name);
  });

  it.each(["context_management", "speed"])("leaves out %s, which is a hint, and lists it", (field) => {
    expect(encode({ [field]: {} }).dropped).toEqual([field]);
  });

  it.each(["mcp_servers", "container", "inference_geo", "thread"])("refuses %s by name", (field) => {
    expect(() => encode({ [field]: [1] })).toThrow(
      expect.objectContaining({ name: "UnsupportedFieldError", field }),
    );
  });
});
