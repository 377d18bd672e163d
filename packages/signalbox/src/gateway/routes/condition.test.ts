import fc from "fast-check";
import { expect, it } from "vitest";
import { compileCondition } from "./condition.ts";
import { SearchBudget } from "./search-budget.ts";
import type { RequestFacts } from "./route-facts.ts";

const FACTS: RequestFacts = {
  metadata: { plan: "pro", seats: 12, trial: false, "a.b": 1, gone: null },
  body: () => ({
    model: "dynamic/x",
    temperature: 0.5,
    messages: [{ role: "user", content: "Hello" }],
    stop: ["a"],
  }),
  header: (name) => ({ "x-team": "core", "x-size": "42", authorization: "Bearer secret" })[name],
  token: { id: "t1" },
  tokensEstimate: () => 900,
  session: null,
};

const IDS = Array.from({ length: 1000 }, (_, i) => `id-${i}`);
const holds = (condition: unknown) => compileCondition(condition)(FACTS);

it.each([
  [{ "metadata.plan": "pro" }, true],
  [{ "metadata.plan": { $eq: "free" } }, false],
  [{ "metadata.plan": { $ne: "free" } }, true],
  [{ "metadata.missing": { $ne: "free" } }, false],
  [{ "metadata.missing": { $nin: ["free"] } }, false],
  [{ "metadata.missing": { $exists: false } }, true],
  [{ "metadata.gone": { $exists: true } }, false],
  [{ "metadata.plan": { $exists: true } }, true],
  [{ "metadata.plan": { $in: ["pro", "team"] } }, true],
  [{ "metadata.plan": { $nin: ["pro", "team"] } }, false],
  [{ "metadata.seats": { $gt: 11, $lt: 13 } }, true],
  [{ "metadata.seats": { $gte: 13 } }, false],
  [{ "metadata.seats": { $lte: 12 } }, true],
  [{ "metadata.plan": { $gt: "free" } }, true],
  [{ "metadata.plan": { $gt: 5 } }, false],
  [{ "metadata.trial": false }, true],
  [{ "metadata.a.b": 1 }, true],
  [{ "body.temperature": { $gte: 0.5 } }, true],
  [{ "body.messages.0.content": { $regex: "^hel", $options: "i" } }, true],
  [{ "body.messages.0.content": { $regex: "^hel" } }, false],
  [{ "body.stop": "a" }, true],
  [{ "body.constructor": { $exists: true } }, false],
  [{ "headers.X-Team": "core" }, true],
  [{ "headers.x-size": { $gt: 41 } }, true],
  [{ "headers.x-size": 42 }, true],
  [{ "headers.authorization": { $exists: true } }, false],
  [{ "token.id": "t1" }, true],
  [{ "request.tokens_estimate": { $lt: 1000 } }, true],
  [{ $and: [{ "metadata.plan": "pro" }, { "metadata.seats": 12 }] }, true],
  [{ $or: [{ "metadata.plan": "free" }, { "metadata.seats": 12 }] }, true],
  [{ $not: { "metadata.plan": "free" } }, true],
  [{ "metadata.plan": { $not: { $eq: "free" } } }, true],
  [{ "metadata.missing": { $not: { $eq: "free" } } }, false],
  [{ "metadata.plan": "pro", "metadata.seats": 13 }, false],
])("%j: %s", (condition, expected) => {
  expect(holds(condition)).toBe(expected);
});

it.each([
  [undefined, /must be an object/],
  [[], /must be an object/],
  [{}, /must not be empty/],
  [{ plan: "x" }, /must begin with metadata\./],
  [{ "metadata.": "x" }, /must begin with/],
  [{ "metadata.x": { $regex: "(" } }, /RE2 pattern/],
  [{ "metadata.x": { $regex: "(?=a)" } }, /RE2 pattern/],
  [{ "metadata.x": { $regex: "a".repeat(1001) } }, /at most 1000/],
  [{ "metadata.x": { $regex: "(?:a?){501}" } }, /repetitions .* may add up to 500/],
  [{ "metadata.x": { $regex: "a{250}b{0,250}c{1,}" } }, /repetitions .* may add up to 500/],
  [{ "metadata.x": { $regex: "(?:(?:(?:ab){30}){30})".repeat(3) } }, /2000 RE2 instructions/],
  [
    { $or: Array.from({ length: 9 }, (_, i) => ({ "metadata.x": { $regex: `a{${250 + i}}` } })) },
    /2000 RE2 instructions in all/,
  ],
  [{ $or: Array.from({ length: 51 }, () => ({ "metadata.x": { $in: IDS } })) }, /50000 operands in all/],
  [{ "metadata.x": { $near: 1 } }, /\$near is not an operator/],
  [{ $xor: [] }, /\$xor is not an operator/],
  [{ $and: [] }, /list of conditions/],
  [{ "metadata.x": { $in: "a" } }, /list/],
  [{ "metadata.x": { $exists: 1 } }, /true or false/],
  [{ "metadata.x": { $gt: true } }, /number or text/],
  [{ "metadata.x": { a: 1 } }, /text, a number/],
  [{ "metadata.x": { $options: "i" } }, /beside \$regex/],
])("refused: %j", (condition, message) => {
  expect(() => compileCondition(condition)).toThrow(message);
});

it("nesting is bounded", () => {
  let deep: object = { "metadata.x": 1 };
  for (let i = 0; i < 2000; i++) deep = { $not: deep };
  expect(() => compileCondition(deep)).toThrow(/nested/);
  let inner: object = { $eq: 1 };
  for (let i = 0; i < 2000; i++) inner = { $not: inner };
  expect(() => compileCondition({ "metadata.x": inner })).toThrow(/nested/);
});

it("a pattern that makes backtracking engines hang is answered", () => {
  const text = `${"a".repeat(15_000)}!`;
  const condition = compileCondition({ "body.text": { $regex: "^(a+)+$" } });
  expect(condition({ ...FACTS, body: () => ({ text }) })).toBe(false);
});

it("the larger the patterns of a route are together, the less of a text they search", () => {
  const isFoundAt = (position: number, instructions: number) => {
    const budget = new SearchBudget();
    const finds = compileCondition({ "body.text": { $regex: "here" } }, budget);
    // Patterns of other elements, of about 100 instructions each.
    for (let i = 100; i < instructions; i += 100) compileCondition({ "body.x": { $regex: `a{95}` } }, budget);
    return finds({ ...FACTS, body: () => ({ text: `${" ".repeat(position)}here` }) });
  };
  expect([isFoundAt(16_000, 100), isFoundAt(17_000, 100)]).toEqual([true, false]);
  expect([isFoundAt(1900, 1000), isFoundAt(2600, 1000)]).toEqual([true, false]);
  expect([isFoundAt(900, 1900), isFoundAt(1900, 1900)]).toEqual([true, false]);
});

it("values without end are compared in part", () => {
  const holds = compileCondition({
    $or: [{ "body.list": "x" }, { "body.text": 1 }, { "body.text": { $gt: 0 } }],
  });
  const items = Array.from({ length: 300 }, () => "y");
  const test = (list: unknown, text: unknown) => holds({ ...FACTS, body: () => ({ list, text }) });
  expect(test([...items.slice(0, 255), "x"], null)).toBe(true);
  expect(test([...items, "x"], null)).toBe(false);
  expect(test([], "1".repeat(400))).toBe(true);
  expect(test([], `1${"0".repeat(400)}`)).toBe(false);
});

it("any JSON is compiled to a condition that answers, or refused with a text", () => {
  const operators = fc.constantFrom(
    "$eq",
    "$ne",
    "$gt",
    "$in",
    "$regex",
    "$not",
    "$exists",
    "$and",
    "$or",
    "x",
  );
  const { condition } = fc.letrec((tie) => ({
    condition: fc.dictionary(
      fc.oneof(
        fc.constantFrom("metadata.plan", "body.stop", "headers.x", "$and", "$or", "$not"),
        fc.string(),
      ),
      tie("operand"),
      { maxKeys: 3 },
    ),
    operand: fc.oneof(
      { maxDepth: 4 },
      fc.jsonValue(),
      fc.dictionary(operators, tie("operand"), { maxKeys: 3 }),
      fc.array(tie("condition"), { maxLength: 3 }),
    ),
  }));
  fc.assert(
    fc.property(condition, (given) => {
      let compiled;
      try {
        compiled = compileCondition(given);
      } catch (error) {
        expect((error as Error).message).not.toBe("");
        return;
      }
      expect(typeof compiled(FACTS)).toBe("boolean");
    }),
    { numRuns: 500 },
  );
});
