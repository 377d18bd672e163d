import { expect, it } from "vitest";
import {
  addElement,
  firstElements,
  parseElements,
  removeElement,
  renameElement,
  withOutput,
  withProperty,
} from "./route-elements.ts";

const FIRST = firstElements("echo", "echo");
const next = (elements: typeof FIRST) => elements[0]?.outputs?.["next"]?.elementId;

it("adds elements with free ids and outputs that lead somewhere", () => {
  const { elements, id } = addElement(FIRST, "model");
  expect(id).toBe("model-2");
  expect(elements.at(-1)).toMatchObject({ type: "model", outputs: { success: { elementId: "end" } } });
  expect(addElement(elements, "percentage").elements.at(-1)?.outputs).toEqual({
    "50%": { elementId: "end" },
    else: { elementId: "end" },
  });
  expect(addElement([], "conditional").elements).toEqual([
    { id: "conditional", type: "conditional", properties: expect.anything() },
  ]);
});

it("renames and removes an element with its references", () => {
  const renamed = renameElement(FIRST, "model", "large");
  expect(next(renamed)).toBe("large");
  expect(renamed.map(({ id }) => id)).toEqual(["start", "large", "end"]);
  const removed = removeElement(FIRST, "model");
  expect(removed.map(({ id }) => id)).toEqual(["start", "end"]);
  expect(removed[0]?.outputs).toEqual({});
});

it("keeps members that it does not know", () => {
  const element = {
    id: "a",
    type: "model",
    properties: { model: "x", later: 1 },
    outputs: { success: { elementId: "end", later: 2 } },
    later: 3,
  };
  expect(withProperty(withOutput(element, "success", "b"), "model", "y")).toEqual({
    ...element,
    properties: { model: "y", later: 1 },
    outputs: { success: { elementId: "b", later: 2 } },
  });
  expect(withProperty(element, "model", undefined).properties).toEqual({ later: 1 });
  expect(withOutput(element, "success", null).outputs).toEqual({});
});

it("reads JSON and says what is wrong with it", () => {
  expect(parseElements(JSON.stringify(FIRST))).toEqual(FIRST);
  expect(() => parseElements("[")).toThrow("not valid JSON");
  expect(() => parseElements("{}")).toThrow("must be a list");
  expect(() => parseElements('[{"id":1}]')).toThrow("Element 1");
  expect(() => parseElements('[{"id":"a","type":"end","outputs":{"x":null}}]')).toThrow("Element 1");
  expect(() => parseElements('[{"id":"a","type":"end"},{"id":"a","type":"end"}]')).toThrow('the id "a"');
});
