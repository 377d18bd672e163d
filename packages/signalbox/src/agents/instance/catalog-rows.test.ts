/** Changes of many instances share statements of many rows, on both databases. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ENGINES, type OpenedDatabase } from "../../../../../test/support/engines.ts";
import { InstanceCatalog } from "./instance-catalog.ts";

describe.each(ENGINES)("on %s", (_, open) => {
  let opened: OpenedDatabase;
  let catalog: InstanceCatalog;
  beforeAll(async () => {
    opened = await open();
    catalog = new InstanceCatalog(opened.database);
  });
  afterAll(async () => {
    await catalog.close();
    await opened.database.close();
    await opened.drop();
  });

  const ref = (i: number) => ({ account: "default", agent: "a", name: `n${i}` });
  const all = Array.from({ length: 137 }, (_unused, i) => i);

  it("adds and changes many instances at once, each as it was meant", async () => {
    await Promise.all(all.map((i) => catalog.register(ref(i), i)));
    // A new one with a due time, known ones with and without, one that becomes active, and one that does not exist.
    catalog.setDueLazily(ref(500), 7);
    const changes = [
      catalog.register(ref(500), 1),
      catalog.setDue(ref(0), 40),
      catalog.setDue(ref(1), 41),
      catalog.setDue(ref(999), 42),
      catalog.register(ref(2), 1000),
    ];
    catalog.touch(ref(3), 2000);
    await Promise.all(changes);
    expect(await catalog.count("default", "a")).toBe(all.length + 1);
    expect(await catalog.find(ref(500))).toMatchObject({ createdAt: 1, nextDueAt: 7 });
    expect(await catalog.find(ref(0))).toMatchObject({ lastActiveAt: 0, nextDueAt: 40 });
    expect(await catalog.find(ref(1))).toMatchObject({ lastActiveAt: 1, nextDueAt: 41 });
    expect(await catalog.find(ref(2))).toMatchObject({ createdAt: 2, lastActiveAt: 1000, nextDueAt: null });
    expect(await catalog.find(ref(3))).toMatchObject({ createdAt: 3, lastActiveAt: 2000 });
    await Promise.all([catalog.setDue(ref(0), null), catalog.setDue(ref(1), null)]);
    expect(await catalog.nextDueAfter("a", 10)).toBeNull();
    expect(await catalog.find(ref(999))).toBeUndefined();
  });
});
