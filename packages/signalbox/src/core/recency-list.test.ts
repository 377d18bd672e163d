import fc from "fast-check";
import { expect, it } from "vitest";
import { type Ranked, RecencyList } from "./recency-list.ts";

class Item implements Ranked<Item> {
  readonly name: number;
  older: Item | null = null;
  newer: Item | null = null;

  constructor(name: number) {
    this.name = name;
  }
}

it("keeps the order of last use for all sequences of uses and deletions", () => {
  const step = fc.record({ item: fc.nat(7), isDeleted: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const list = new RecencyList<Item>();
      const items = Array.from({ length: 8 }, (_, i) => new Item(i));
      let expected: number[] = [];
      for (const { item, isDeleted } of steps) {
        expected = expected.filter((name) => name !== item);
        if (isDeleted) list.delete(items[item] as Item);
        else {
          list.use(items[item] as Item);
          expected.push(item);
        }
        expect([...list.oldestFirst()].map(({ name }) => name)).toEqual(expected);
      }
    }),
  );
});

it("allows the current item to be deleted during iteration", () => {
  const list = new RecencyList<Item>();
  for (let i = 0; i < 5; i++) list.use(new Item(i));
  const seen: number[] = [];
  for (const item of list.oldestFirst()) {
    seen.push(item.name);
    list.delete(item);
  }
  expect(seen).toEqual([0, 1, 2, 3, 4]);
  expect([...list.oldestFirst()]).toEqual([]);
});
