import { describe, expect, it } from "vitest";
import { estimateDifficulty, HARDEST, turnOf } from "./difficulty.ts";

const user = (content: unknown) => ({ role: "user", content });

describe("the difficulty of a request", () => {
  it("grows with its size, its tools and code in its last input", () => {
    const plain = { messages: [user("What is the capital of France?")] };
    expect(estimateDifficulty(plain, 10)).toBe(0);
    expect(estimateDifficulty(plain, 5000)).toBe(1);
    expect(estimateDifficulty(plain, 50_000)).toBe(2);
    const tools = Array.from({ length: 9 }, () => ({}));
    expect(estimateDifficulty({ ...plain, tools: [{}] }, 10)).toBe(1);
    expect(estimateDifficulty({ ...plain, tools }, 10)).toBe(2);
    expect(estimateDifficulty({ messages: [user("Fix this:\n```ts\nlet x\n```")], tools }, 50_000)).toBe(
      HARDEST,
    );
  });

  it("is what the caller asks for, in each dialect", () => {
    for (const asked of [
      { reasoning_effort: "high" },
      { reasoning: { effort: "xhigh" } },
      { thinking: { type: "enabled" } },
    ])
      expect(estimateDifficulty({ input: "Hi", ...asked }, 1)).toBe(HARDEST);
    for (const asked of [{ reasoning_effort: "minimal" }, { reasoning: { effort: "none" } }])
      expect(estimateDifficulty({ messages: [], tools: [{}], ...asked }, 50_000)).toBe(0);
  });

  it("is that of any JSON, without an error", () => {
    for (const messages of [
      null,
      3,
      "text",
      {},
      [null, 1, "x", { role: "user" }, user(null), user([null, 3])],
    ])
      expect(estimateDifficulty({ messages, tools: "x" }, 0)).toBe(0);
  });
});

describe("the turn of a request", () => {
  it("stays while results of tools follow an input, in each dialect", () => {
    const same = (...requests: object[]) => new Set(requests.map((one) => turnOf(one as never))).size === 1;
    expect(
      same(
        { messages: [user("Weather?")] },
        {
          messages: [
            user("Weather?"),
            { role: "assistant", tool_calls: [{}] },
            { role: "tool", content: "21" },
          ],
        },
      ),
    ).toBe(true);
    const block = { type: "tool_result", tool_use_id: "t", content: "21" };
    expect(
      same(
        { messages: [user("Weather?")] },
        { messages: [user("Weather?"), { role: "assistant", content: [] }, user([block])] },
      ),
    ).toBe(true);
    const output = { type: "function_call_output", call_id: "c", output: "21" };
    expect(same({ input: [user("Weather?")] }, { input: [user("Weather?"), output] })).toBe(true);
    const contents = [{ role: "user", parts: [{ text: "Weather?" }] }];
    const answer = { role: "user", parts: [{ functionResponse: { name: "w", response: {} } }] };
    expect(same({ contents }, { contents: [...contents, answer] })).toBe(true);
  });

  it("is another one with the next input, also if it has the same text", () => {
    const one = { messages: [user("Go on")] };
    const two = { messages: [user("Go on"), { role: "assistant", content: "…" }, user("Go on")] };
    expect(turnOf(one)).not.toBe(turnOf(two));
  });
});
