import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isFinalCloseCode, parseServerFrame } from "./parse-server-frame.ts";

describe("parseServerFrame", () => {
  it.each([
    { type: "cf_agent_identity", name: "octo-repo", agent: "webhook-agent", stateFollows: true },
    { type: "cf_agent_state", state: null },
    { type: "cf_agent_state_error", error: "Connection is readonly" },
    { type: "rpc", id: "1", success: true, done: true },
    { type: "rpc", id: "1", success: true, done: false, result: [1] },
    { type: "rpc", id: "1", success: false, error: "Method x does not exist" },
  ])("parses $type", (frame) => {
    expect(parseServerFrame(JSON.stringify(frame))).toEqual(frame);
  });

  it.each([
    "",
    "hello",
    "[]",
    "{",
    '{"type":"chat"}',
    '{"type":"cf_agent_state"}',
    '{"type":"cf_agent_identity","name":1,"agent":"a"}',
    '{"type":"rpc","id":1,"success":true,"done":true}',
    '{"type":"rpc","id":"1","success":true}',
    '{"type":"rpc","id":"1","success":false}',
    '{"type":"rpc","id":"1","method":"getEvents","args":[]}',
  ])("treats %s as a message of the agent", (text) => {
    expect(parseServerFrame(text)).toBeNull();
  });

  it("never throws", () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => void parseServerFrame(text)));
  });
});

describe("isFinalCloseCode", () => {
  it("is true for 1008 and the application range only", () => {
    expect([1008, 4000, 4401, 4999].every(isFinalCloseCode)).toBe(true);
    expect([1000, 1001, 1005, 1006, 1011, 1012, 1013, 3999, 5000].some(isFinalCloseCode)).toBe(false);
  });
});
