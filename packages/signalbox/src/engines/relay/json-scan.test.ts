import fc from "fast-check";
import { expect, it } from "vitest";
import { editMembers, endOfLevel, endOfString, readEachMember, readMembers, skipSpace } from "./json-scan.ts";

const NAMES = ["model", "max_tokens", "x", 'quo"te', "back\\slash", "__proto__"];
const WANTED = new Set(NAMES);
const key = fc.oneof(fc.constantFrom(...NAMES), fc.string({ unit: "grapheme" }));
const object = fc.dictionary(key, fc.jsonValue({ stringUnit: "grapheme" }), { noNullPrototype: true });
const space = fc.constantFrom(undefined, 1, "\t");

/** The members that `readMembers` reads, by way of `JSON.parse`. */
function membersByParsing(text: string): Map<string, unknown> {
  const all = Object.entries(JSON.parse(text) as Record<string, unknown>);
  return new Map(all.filter(([name, value]) => WANTED.has(name) && !Array.isArray(value)));
}

function members(text: string): Map<string, unknown> {
  return readMembers(Buffer.from(text), WANTED);
}

it("reads the members that JSON.parse reads", () => {
  fc.assert(
    fc.property(object, space, (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      expect(members(text)).toEqual(membersByParsing(text));
    }),
  );
});

it("lets the last of several members with one name count", () => {
  for (const text of ['{"x":1,"x":"two"}', '{"x":"one","x":2}', '{"x":1,"x":{}}', '{"\\u0078":1, "x":3}'])
    expect(members(text)).toEqual(membersByParsing(text));
});

it("reads no large object: it is content, and would take as long as the whole body", () => {
  const text = JSON.stringify({ x: { y: "z".repeat(100_000) }, model: "m" });
  expect([...members(text)]).toEqual([["model", "m"]]);
});

it("reads every member of a whole object, also several with one name, and nothing of another text", () => {
  const each = (text: string) => readEachMember(Buffer.from(text), (name) => WANTED.has(name));
  fc.assert(
    fc.property(object, space, fc.nat(), (value, indent, cut) => {
      const text = JSON.stringify(value, null, indent);
      const wanted = Object.entries(JSON.parse(text) as object).filter(([name]) => WANTED.has(name));
      expect(each(text)?.map(({ name, value: found }) => [name, found])).toEqual(wanted);
      expect(each(text.slice(0, cut % text.length))).toBeNull();
      expect(each(`${text} x`)).toBeNull();
    }),
  );
  expect(each('{"x":1,"\\u0078":[2],"x":{"y":3}}')?.map(({ value }) => value)).toEqual([1, [2], { y: 3 }]);
  for (const text of ["", "[]", "{} {}", '{"x":1,}', '{"x" 1}', "{'x':1}", '{"x":}'])
    expect(each(text)).toBeNull();
});

it("reads no value that a cut changed, wherever the text is cut", () => {
  fc.assert(
    fc.property(object, space, fc.nat(), (value, indent, cut) => {
      const text = Buffer.from(JSON.stringify(value, null, indent));
      const whole = readMembers(text, WANTED);
      const part = readMembers(text.subarray(0, cut % (text.length + 1)), WANTED);
      for (const [name, found] of part) expect(found).toEqual(whole.get(name));
    }),
  );
});

it("finds where a string and a level end", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.jsonValue(), space, (string, value, indent) => {
      const text = Buffer.from(JSON.stringify(string));
      expect(endOfString(Buffer.concat([text, text]), 0)).toBe(text.length - 1);
      const list = Buffer.from(JSON.stringify([value], null, indent));
      expect(endOfLevel(Buffer.concat([list, Buffer.from("]}")]), 1)).toBe(list.length - 1);
      expect(endOfLevel(list.subarray(0, -1), 1)).toBe(-1);
    }),
  );
});

it("never throws and never leaves the bytes, whatever they are", () => {
  const hostile = fc
    .array(fc.constantFrom("{", "}", "[", "]", '"', ",", ":", "\\", " ", "x", "1", "\n"), { maxLength: 60 })
    .map((all) => all.join(""));
  fc.assert(
    fc.property(
      fc.oneof(
        hostile.map((text) => Buffer.from(text)),
        fc.uint8Array().map((bytes) => Buffer.from(bytes)),
      ),
      fc.nat({ max: 60 }),
      (bytes, from) => {
        readMembers(bytes, WANTED);
        for (const at of [endOfString(bytes, from), endOfLevel(bytes, from)]) {
          expect(at === -1 || (at >= from && at < bytes.length)).toBe(true);
        }
        expect(skipSpace(bytes, 0)).toBeLessThanOrEqual(bytes.length);
      },
    ),
    { numRuns: 1000 },
  );
});

it("replaces a member and keeps every other byte", () => {
  fc.assert(
    fc.property(object, space, fc.string({ unit: "grapheme" }), (value, indent, model) => {
      const fields = { ...value, model: "before" };
      const bytes = Buffer.from(JSON.stringify(fields, null, indent));
      const replaced = editMembers(
        bytes,
        new Map([["model", { name: "model", json: JSON.stringify(model) }]]),
      );
      expect(replaced.toString()).toBe(JSON.stringify({ ...fields, model }, null, indent));
    }),
  );
});

it("removes and renames members as building the object again would", () => {
  fc.assert(
    fc.property(object, fc.subarray(NAMES), (value, removed) => {
      const bytes = Buffer.from(JSON.stringify({ ...value, old: 1 }));
      const edits = new Map<string, { name: string; json: string } | null>(
        removed.map((name) => [name, null]),
      );
      edits.set("old", { name: "new name", json: "[2]" });
      const kept = Object.entries({ ...value, old: 1 }).filter(([name]) => !removed.includes(name));
      const expected = kept.map(([name, item]) => (name === "old" ? ["new name", [2]] : [name, item]));
      expect(JSON.parse(editMembers(bytes, edits).toString())).toEqual(
        // JSON has no negative zero.
        JSON.parse(JSON.stringify(Object.fromEntries(expected))),
      );
    }),
  );
});

it("edits every member of the name, and none inside other values", () => {
  const text = '{ "model":1,"a":{"model":"inner"},"\\u006dodel" : {"x":[1]} ,"b":"\\"model\\":1"}';
  const edited = (edit: { name: string; json: string } | null, bytes = text) =>
    editMembers(Buffer.from(bytes), new Map([["model", edit]])).toString();
  expect(edited({ name: "model", json: '"m"' })).toBe(
    '{ "model":"m","a":{"model":"inner"},"\\u006dodel" : "m" ,"b":"\\"model\\":1"}',
  );
  expect(edited(null)).toBe('{ "a":{"model":"inner"},"b":"\\"model\\":1"}');
  expect(edited(null, '{"a":1, "model":2, "model":3}')).toBe('{"a":1}');
  expect(edited(null, '{"model":3 }')).toBe("{ }");
  expect(edited(null, '{"a":{"model":1}}')).toBe('{"a":{"model":1}}');
});
