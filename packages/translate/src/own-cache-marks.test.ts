import { describe, expect, it } from "vitest";
import { translateRequest } from "./translate.ts";
import type { Dialect } from "./dialect.ts";

const MARK = { type: "ephemeral" };

function toMessages(from: Dialect, body: object) {
  return translateRequest(from, "messages", body, {
    model: "claude-opus-5",
    target: {},
    dropUnsupported: false,
    marksCache: true,
    newId: (prefix) => `${prefix}1`,
    now: 0,
  }).body as {
    system?: { text: string; cache_control?: object }[];
    tools?: { cache_control?: object }[];
    messages: { role: string; content: string | { cache_control?: object }[] }[];
  };
}

const TOOL = { type: "function", function: { name: "read", parameters: { type: "object" } } };
const user = (content: string) => ({ role: "user", content });
const assistant = (content: string) => ({ role: "assistant", content });

/** For each message whether its last part has a mark. */
function marked({ messages }: ReturnType<typeof toMessages>): boolean[] {
  return messages.map(
    ({ content }) => typeof content !== "string" && content.at(-1)?.cache_control !== undefined,
  );
}

describe("a request of a dialect that caches by itself", () => {
  it("has marks on its system text and its last two turns of the user", () => {
    const body = toMessages("chat", {
      model: "x",
      tools: [TOOL],
      messages: [
        { role: "system", content: "Be brief" },
        user("a"),
        assistant("b"),
        user("c"),
        assistant("d"),
        user("e"),
      ],
    });
    expect(body.system?.at(-1)?.cache_control).toEqual(MARK);
    expect(body.tools?.[0]?.cache_control).toBeUndefined();
    expect(marked(body)).toEqual([false, false, true, false, true]);
  });

  it("has a mark on its tools if it has no system text", () => {
    const body = toMessages("chat", { model: "x", tools: [TOOL], messages: [user("a")] });
    expect(body.tools?.[0]?.cache_control).toEqual(MARK);
    expect(marked(body)).toEqual([false]);
  });

  it("has marks on its first question if it names a key of the cache, as Codex does", () => {
    const body = toMessages("responses", {
      model: "x",
      instructions: "Be brief",
      prompt_cache_key: "thread-1",
      input: "a",
    });
    expect(body.system?.at(-1)?.cache_control).toEqual(MARK);
    expect(marked(body)).toEqual([true]);
  });

  it("has marks on the results of tools", () => {
    const body = toMessages("chat", {
      model: "x",
      messages: [
        user("a"),
        {
          role: "assistant",
          tool_calls: [{ id: "1", type: "function", function: { name: "read", arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: "1", content: "text" },
      ],
    });
    expect(marked(body)).toEqual([true, false, true]);
  });

  it("has none if it is a single question, and none on empty texts", () => {
    const single = toMessages("chat", {
      model: "x",
      messages: [{ role: "system", content: "s" }, user("a")],
    });
    expect(JSON.stringify(single)).not.toContain("cache_control");
    const empty = toMessages("gemini", {
      contents: [
        { role: "user", parts: [{ text: "a" }] },
        { role: "model", parts: [{ text: "b" }] },
        { role: "user", parts: [{ text: "c" }, { text: "" }] },
      ],
    });
    expect(JSON.stringify(empty.messages.at(-1))).not.toMatch(/"text":""[^}]*cache_control/);
  });

  it("has none if the caller of the translation does not want them", () => {
    const { body } = translateRequest(
      "chat",
      "messages",
      { model: "x", tools: [TOOL], messages: [user("a"), assistant("b"), user("c")] },
      { model: "claude-opus-5", target: {}, dropUnsupported: false, newId: (prefix) => prefix, now: 0 },
    );
    expect(JSON.stringify(body)).not.toContain("cache_control");
  });

  it("keeps the marks that the client has set, and gets no others", () => {
    const body = toMessages("chat", {
      model: "x",
      tools: [TOOL],
      messages: [
        { role: "user", content: [{ type: "text", text: "a", cache_control: MARK }] },
        assistant("b"),
        user("c"),
      ],
    });
    expect(marked(body)).toEqual([true, false, false]);
    expect(body.tools?.[0]?.cache_control).toBeUndefined();
  });
});
