/** Rules of the ways from the responses dialect. Each stands for a defect seen in another translator. */
import { describe, expect, it } from "vitest";
import { translateResponse, UnsupportedFieldError } from "./index.ts";
import { contextOf, translate } from "./translate-fixture.ts";

const user = { role: "user", content: [{ type: "input_text", text: "Hi" }] };
const read = { type: "function", name: "read", parameters: { type: "object" }, strict: false };
const patch = {
  type: "custom",
  name: "apply_patch",
  description: "Edits files",
  format: { type: "grammar", syntax: "lark", definition: "start: begin" },
};

const encode = (body: Record<string, unknown>, to: "chat" | "messages" = "messages", given = {}) =>
  translate("responses", to, { model: "m", input: [user], ...body }, given);

describe("a responses request for other dialects", () => {
  it("puts instructions and leading developer messages into the system text", () => {
    const { body } = encode({ instructions: "A", input: [{ role: "developer", content: "B" }, user] });
    expect(body["system"]).toEqual([
      { type: "text", text: "A" },
      { type: "text", text: "B" },
    ]);
  });

  it("collects the assistant's items and the outputs into turns", () => {
    const input = [
      user,
      {
        type: "reasoning",
        id: "rs_1",
        summary: [{ type: "summary_text", text: "Hmm" }],
        encrypted_content: "messages::SIG",
      },
      {
        type: "message",
        role: "assistant",
        content: [{ type: "output_text", text: "Reading", annotations: [] }],
      },
      { type: "function_call", call_id: "a", name: "read", arguments: '{"p":1}' },
      { type: "function_call", call_id: "b", name: "read", arguments: "" },
      { type: "function_call_output", call_id: "a", output: "one" },
      { type: "function_call_output", call_id: "b", output: [{ type: "input_text", text: "two" }] },
    ];
    expect(encode({ input }).body["messages"]).toEqual([
      { role: "user", content: "Hi" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Hmm", signature: "SIG" },
          { type: "text", text: "Reading" },
          { type: "tool_use", id: "a", name: "read", input: { p: 1 } },
          { type: "tool_use", id: "b", name: "read", input: {} },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a", content: "one" },
          { type: "tool_result", tool_use_id: "b", content: "two" },
        ],
      },
    ]);
    expect(encode({ input }, "chat").body["messages"]).toMatchObject([
      { role: "user" },
      { role: "assistant", content: "Reading", tool_calls: [{ id: "a" }, { id: "b" }] },
      { role: "tool", tool_call_id: "a" },
      { role: "tool", tool_call_id: "b" },
    ]);
  });

  it("translates text.format, max_output_tokens and the effort", () => {
    const schema = { type: "object", properties: {} };
    const { body } = encode({
      text: { format: { type: "json_schema", name: "o", schema, strict: true } },
      max_output_tokens: 50,
      reasoning: { effort: "low", summary: "auto" },
    });
    expect(body["max_tokens"]).toBe(50);
    expect(body["output_config"]).toEqual({ format: { type: "json_schema", schema }, effort: "low" });
    expect(body["thinking"]).toEqual({ type: "adaptive", display: "summarized" });
  });

  it("offers custom tools as functions with one string and answers with custom calls", () => {
    const input = [
      user,
      { type: "custom_tool_call", call_id: "p", name: "apply_patch", input: "*** Begin" },
      { type: "custom_tool_call_output", call_id: "p", output: "done" },
    ];
    const { body, context } = encode({ input, tools: [patch] });
    expect(body["tools"]).toMatchObject([
      {
        name: "apply_patch",
        description: "Edits files\n\nThe input must match this lark grammar:\nstart: begin",
        input_schema: { required: ["input"] },
      },
    ]);
    expect((body["messages"] as { content: unknown }[])[1]?.content).toEqual([
      { type: "tool_use", id: "p", name: "apply_patch", input: { input: "*** Begin" } },
    ]);
    const response = translateResponse(context, {
      id: "msg_1",
      content: [{ type: "tool_use", id: "t", name: "apply_patch", input: { input: "*** End" } }],
      stop_reason: "tool_use",
    });
    expect(response["output"]).toMatchObject([
      { type: "custom_tool_call", call_id: "t", name: "apply_patch", input: "*** End" },
    ]);
  });

  it("offers tools of a namespace under a joined name and answers with both", () => {
    const tools = [{ type: "namespace", name: "crm", description: "", tools: [read] }];
    const { body, context } = encode({ tools }, "chat");
    expect(body["tools"]).toMatchObject([{ function: { name: "crm__read" } }]);
    const message = {
      tool_calls: [{ id: "c", type: "function", function: { name: "crm__read", arguments: "{}" } }],
    };
    const response = translateResponse(context, { choices: [{ message, finish_reason: "tool_calls" }] });
    expect(response["output"]).toMatchObject([{ type: "function_call", name: "read", namespace: "crm" }]);
    const input = [
      user,
      { type: "function_call", call_id: "c", name: "read", namespace: "crm", arguments: "{}" },
    ];
    expect(encode({ tools, input }, "chat").body["messages"]).toMatchObject([
      { role: "user" },
      { tool_calls: [{ function: { name: "crm__read" } }] },
    ]);
  });

  it("chooses a tool of a namespace, and a custom one, under the target's name", () => {
    const tools = [{ type: "namespace", name: "crm", description: "", tools: [read] }, patch];
    expect(encode({ tools, tool_choice: { type: "function", name: "read" } }).body["tool_choice"]).toEqual({
      type: "tool",
      name: "crm__read",
    });
    expect(
      encode({ tools, tool_choice: { type: "custom", name: "apply_patch" } }).body["tool_choice"],
    ).toEqual({
      type: "tool",
      name: "apply_patch",
    });
  });

  it("leaves out hosted tools, listed, and refuses one that is chosen", () => {
    const tools = [{ type: "web_search" }, read, { type: "local_shell" }];
    const { body, dropped } = encode({ tools });
    expect(body["tools"]).toMatchObject([{ name: "read" }]);
    expect(dropped).toEqual(["tools.local_shell", "tools.web_search"]);
    expect(() => encode({ tools, tool_choice: { type: "web_search" } })).toThrow(UnsupportedFieldError);
    expect(() => encode({ tools: [{ type: "web_search" }], tool_choice: "required" })).toThrow(
      UnsupportedFieldError,
    );
  });

  it("refuses previous_response_id with the code that clients know", () => {
    expect(() => encode({ previous_response_id: "resp_1" })).toThrow(
      expect.objectContaining({ name: "InvalidRequestError", code: "previous_response_not_found" }),
    );
  });

  it("says that nothing is stored and repeats the request's settings", () => {
    const context = contextOf("responses", "chat", {
      store: true,
      instructions: "Be brief",
      metadata: { a: "b" },
    });
    const response = translateResponse(context, {
      choices: [{ message: { content: "Yes" }, finish_reason: "stop" }],
    });
    expect(response).toMatchObject({
      object: "response",
      status: "completed",
      store: false,
      instructions: "Be brief",
      metadata: { a: "b" },
      tools: [],
      tool_choice: "auto",
      parallel_tool_calls: true,
    });
  });

  it("accepts the fields that coding agents send, listing the hints", () => {
    const request = {
      store: false,
      stream: true,
      include: ["reasoning.encrypted_content"],
      prompt_cache_key: "k",
      client_metadata: { a: "b" },
      parallel_tool_calls: false,
      tool_choice: "auto",
      tools: [read],
      text: { verbosity: "low" },
    };
    const { dropped, stream } = encode(request);
    expect(stream).toBe(true);
    expect(dropped).toEqual(["client_metadata", "text.verbosity", "prompt_cache_key"]);
  });

  it.each(["conversation", "prompt", "background", "image"])("refuses %s by name", (field) => {
    expect(() => encode({ [field]: true })).toThrow(
      expect.objectContaining({ name: "UnsupportedFieldError", field }),
    );
  });
});

describe("a request for the responses dialect", () => {
  const encodeChat = (body: Record<string, unknown>) =>
    translate("chat", "responses", { model: "m", messages: [{ role: "user", content: "Hi" }], ...body });

  it("reports a failed response as a failure", () => {
    const failed = {
      id: "resp_1",
      status: "failed",
      error: { code: "server_error", message: "Broken" },
      output: [],
    };
    expect(() => translateResponse(contextOf("chat", "responses"), failed)).toThrow(
      expect.objectContaining({ name: "FailedResponseError", message: "Broken" }),
    );
  });

  it("stores nothing and asks for encrypted reasoning", () => {
    expect(encodeChat({}).body).toEqual({
      model: "gpt-5",
      input: [{ type: "message", role: "user", content: "Hi" }],
      store: false,
      include: ["reasoning.encrypted_content"],
    });
    const plain = translate("chat", "responses", { model: "m", messages: [] }, { model: "gpt-4o" });
    expect(plain.body).not.toHaveProperty("include");
  });

  it("says that a tool is not strict, because the default is the opposite", () => {
    const { body } = encodeChat({ tools: [{ type: "function", function: { name: "f" } }] });
    expect(body["tools"]).toEqual([
      { type: "function", name: "f", parameters: { type: "object", properties: {} }, strict: false },
    ]);
  });

  it("raises a limit below the provider's minimum, listed", () => {
    const { body, dropped } = encodeChat({ max_tokens: 1 });
    expect(body["max_output_tokens"]).toBe(16);
    expect(dropped).toEqual(["max_completion_tokens"]);
  });

  it("returns the provider's own reasoning to it, and no other", () => {
    const context = contextOf("messages", "responses");
    const response = translateResponse(context, {
      id: "resp_1",
      status: "completed",
      output: [
        {
          type: "reasoning",
          id: "rs_1",
          summary: [{ type: "summary_text", text: "Hmm" }],
          encrypted_content: "ENC",
        },
        { type: "function_call", id: "fc_1", call_id: "c", name: "f", arguments: "{}" },
      ],
    });
    expect(response["content"]).toEqual([
      { type: "thinking", thinking: "Hmm", signature: "responses:rs_1:ENC" },
      { type: "tool_use", id: "c", name: "f", input: {} },
    ]);
    const foreign = { type: "thinking", thinking: "Other", signature: "CLAUDE" };
    const content = [foreign, ...(response["content"] as unknown[])];
    const messages = [
      { role: "user", content: "Hi" },
      { role: "assistant", content },
    ];
    const { body, dropped } = translate("messages", "responses", { model: "m", max_tokens: 99, messages });
    expect(body["input"]).toEqual([
      { type: "message", role: "user", content: "Hi" },
      {
        type: "reasoning",
        id: "rs_1",
        summary: [{ type: "summary_text", text: "Hmm" }],
        encrypted_content: "ENC",
      },
      { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
    ]);
    expect(dropped).toEqual(["messages[].reasoning"]);
  });
});
