import type { GuardrailFindings } from "@signalbox/client";
import { expect, it } from "vitest";
import { addFindings } from "./add-findings.ts";

const rule = (name: string, calls: number) => ({
  rule: name,
  owner: "gateway",
  place: "prompt" as const,
  action: "flag" as const,
  kind: "EMAIL",
  count: calls,
  calls,
  cost: 0.5,
});
const found = (rules: GuardrailFindings["rules"], cursor: string | null): GuardrailFindings => ({
  block: 0,
  mask: 0,
  flag: 1,
  rules,
  samples: [],
  cursor,
});

it("findings of requests that continue each other are added up by rule, and the second says how to go on", () => {
  const sum = addFindings(found([rule("a", 2), rule("b", 1)], "x"), found([rule("b", 4)], null));
  expect(sum).toMatchObject({ flag: 2, cursor: null });
  expect(sum.rules).toMatchObject([
    { rule: "b", calls: 5, count: 5, cost: 1 },
    { rule: "a", calls: 2 },
  ]);
});
