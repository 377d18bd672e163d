import fc from "fast-check";
import { expect, it } from "vitest";
import { layoutGraph, NODE_HEIGHT, NODE_WIDTH } from "./graph-layout.ts";
import { type Elements, firstElements } from "./route-elements.ts";

it("places a route from top to bottom", () => {
  const { nodes, edges } = layoutGraph(firstElements("echo", "echo"));
  const ys = nodes.map(({ y }) => y);
  expect(ys).toEqual(ys.toSorted((a, b) => a - b));
  expect(new Set(ys).size).toBe(3);
  expect(edges.map(({ from, to, outputs }) => [from, to, ...outputs])).toEqual([
    ["start", "model", "next"],
    ["model", "end", "success"],
  ]);
});

it("leads an edge over several layers past the elements between", () => {
  const elements: Elements = [
    { id: "start", type: "start", outputs: { next: { elementId: "if" } } },
    { id: "if", type: "conditional", outputs: { true: { elementId: "a" }, false: { elementId: "end" } } },
    { id: "a", type: "model", outputs: { success: { elementId: "end" }, fallback: { elementId: "end" } } },
    { id: "end", type: "end" },
  ];
  const { nodes, edges } = layoutGraph(elements);
  const passed = edges.find(({ from, to }) => from === "if" && to === "end")?.points ?? [];
  expect(passed).toHaveLength(4);
  const middle = nodes.find(({ id }) => id === "a");
  expect(Math.abs((passed[1]?.x ?? 0) - (middle?.x ?? 0))).toBeGreaterThan(NODE_WIDTH / 2);
  expect(edges.find(({ from }) => from === "a")?.outputs).toEqual(["success", "fallback"]);
});

it("places any draft without overlaps: cycles, outputs to nowhere, elements that nobody reaches", () => {
  const name = fc.integer({ min: 0, max: 9 }).map(String);
  const draft = fc.uniqueArray(
    fc.record({
      id: name,
      type: fc.constantFrom("start", "model", "conditional", "percentage", "end", "other"),
      outputs: fc.dictionary(
        fc.constantFrom("next", "true", "false", "success", "fallback", "10%"),
        fc.record({ elementId: name }),
        { noNullPrototype: true },
      ),
    }),
    { selector: ({ id }) => id },
  );
  fc.assert(
    fc.property(draft, (elements) => {
      const { nodes, edges, width, height } = layoutGraph(elements);
      expect(nodes.map(({ id }) => id)).toEqual(elements.map(({ id }) => id));
      for (const a of nodes) {
        expect(a.x - NODE_WIDTH / 2).toBeGreaterThanOrEqual(0);
        expect(a.x + NODE_WIDTH / 2).toBeLessThanOrEqual(width);
        expect(a.y + NODE_HEIGHT).toBeLessThanOrEqual(height);
        for (const b of nodes)
          expect(a.id === b.id || a.y !== b.y || Math.abs(a.x - b.x) >= NODE_WIDTH).toBe(true);
      }
      for (const { points } of edges) expect(points.length).toBeGreaterThanOrEqual(2);
    }),
  );
});
