import { array, assert, jsonValue, oneof, property, record, string } from "fast-check";
import { describe, expect, it } from "vitest";
import { kebabCase, parseClientFrame } from "./agent-frames.ts";

describe("parseClientFrame", () => {
  it("parses every call and every state", () => {
    assert(
      property(string(), string(), array(jsonValue()), (id, method, args) => {
        const text = JSON.stringify({ type: "rpc", id, method, args });
        expect(parseClientFrame(text)).toEqual(JSON.parse(text));
      }),
    );
    assert(
      property(jsonValue(), (state) => {
        const text = JSON.stringify({ type: "cf_agent_state", state });
        expect(parseClientFrame(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  it("never throws, and returns null for any other text", () => {
    const notFrames = oneof(
      string(),
      jsonValue().map((value) => JSON.stringify(value)),
      record({ type: string(), id: jsonValue(), method: jsonValue(), args: jsonValue() }).map((value) =>
        JSON.stringify(value),
      ),
    );
    assert(
      property(notFrames, (text) => {
        const frame = parseClientFrame(text);
        if (frame !== null) expect(["rpc", "cf_agent_state"]).toContain(frame.type);
      }),
    );
    for (const text of [
      "",
      "{",
      "[]",
      "null",
      '{"type":"rpc"}',
      '{"type":"rpc","id":1,"method":"m","args":[]}',
      '{"type":"rpc","id":"1","method":"m","args":{}}',
      '{"type":"cf_agent_state"}',
      '{"type":"other","state":1}',
    ]) {
      expect(parseClientFrame(text)).toBeNull();
    }
  });
});

describe("kebabCase", () => {
  it.each([
    ["WebhookAgent", "webhook-agent"],
    ["GitHubAgent", "git-hub-agent"],
    ["AIAgent", "a-i-agent"],
    ["MyMCPServer", "my-m-c-p-server"],
    ["LOUD_AGENT", "loud-agent"],
    ["Agent2", "agent2"],
    ["already-kebab", "already-kebab"],
    ["Webhook-Agent", "webhook--agent"],
    ["snake_case", "snake-case"],
  ])("converts %s to %s", (name, kebab) => {
    expect(kebabCase(name)).toBe(kebab);
  });
});

it("allows whitespace before a frame, as JSON does", () => {
  const call = { type: "rpc", id: "1", method: "read", args: [] };
  expect(parseClientFrame(` \r\n\t${JSON.stringify(call)}`)).toEqual(call);
  expect(parseClientFrame(`\u00a0${JSON.stringify(call)}`)).toBeNull();
});
