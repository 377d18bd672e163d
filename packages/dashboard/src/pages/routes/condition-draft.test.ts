import { expect, it } from "vitest";
import { fromConditionDraft, toConditionDraft } from "./condition-draft.ts";

const draftOf = (conditions: unknown) =>
  toConditionDraft({ id: "a", type: "conditional", properties: { conditions } });

it.each([
  { "metadata.plan": { $eq: "pro" } },
  { "metadata.level": { $gte: 5 } },
  { "metadata.level": { $ne: "5" } },
  { "metadata.plan": { $in: ["pro", "team", 7] } },
  { "metadata.plan": { $exists: false } },
  { "body.model": { $regex: "^gpt-5(-mini)?$" } },
])("a form keeps %j", (condition) => {
  const draft = draftOf(condition);
  expect(draft).not.toBeNull();
  if (draft !== null) expect(fromConditionDraft(draft)).toEqual(condition);
});

it("reads a plain value as equality", () => {
  expect(draftOf({ "metadata.plan": "pro" })).toEqual({
    path: "metadata.plan",
    operator: "$eq",
    value: "pro",
  });
});

it.each([
  {},
  { $or: [{ "metadata.plan": "pro" }] },
  { "metadata.plan": "pro", "metadata.level": 5 },
  { "metadata.plan": { $regex: "a", $options: "i" } },
  { "metadata.plan": { $in: ["a,b"] } },
  { "metadata.plan": { $not: { $eq: "a" } } },
  null,
])("leaves %j to the JSON view", (condition) => {
  expect(draftOf(condition)).toBeNull();
});
