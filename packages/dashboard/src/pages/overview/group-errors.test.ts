import { expect, it } from "vitest";
import { groupErrors } from "./group-errors.ts";

const call = (answer: string | null, created_at: string, status_code = 429) => ({
  answer,
  created_at,
  status_code,
  provider: "openai",
  model: "gpt-4o",
});

it("groups failed calls by their message, without the ids and waits of single calls", () => {
  const { groups, calls } = groupErrors([
    call("Rate limit reached, try again in 1.2 s (req_8fa2)", "2026-11-18T10:00:00Z"),
    call("Rate limit reached, try again in 20 s (req_11b0)", "2026-11-18T11:00:00Z"),
    call(null, "2026-11-18T12:00:00Z", 502),
  ]);
  expect(calls).toBe(3);
  expect(groups.map(({ message, count, last }) => [message, count, last])).toEqual([
    ["429: Rate limit reached, try again in … s (…)", 2, "2026-11-18T11:00:00Z"],
    ["Status 502", 1, "2026-11-18T12:00:00Z"],
  ]);
  expect(groupErrors([])).toEqual({ groups: [], calls: 0 });
});
