import { expect, it } from "vitest";
import { ResourceCache, type ResourceText } from "./resource-cache.ts";

const resource = (json: string): ResourceText => ({ json, etag: '"e"' });

it("returns an entry that was read after the last change", () => {
  const cache = new ResourceCache();
  cache.put("k", resource("1"), cache.generation);
  expect(cache.get("k")?.json).toBe("1");
});

it("has no entry during a write, and accepts none that was read before the write ended", () => {
  const cache = new ResourceCache();
  const before = cache.generation;
  cache.put("k", resource("old"), before);
  cache.beginWrite(["k"]);
  expect(cache.get("k")).toBeUndefined();
  cache.put("k", resource("read before"), before);
  const during = cache.generation;
  cache.put("k", resource("read during"), during);
  expect(cache.get("k")).toBeUndefined();
  cache.endWrite(["k"]);
  cache.put("k", resource("read during"), during);
  expect(cache.get("k")).toBeUndefined();
  cache.put("k", resource("new"), cache.generation);
  expect(cache.get("k")?.json).toBe("new");
});

it("accepts an entry only when all batches that write the resource have ended", () => {
  const cache = new ResourceCache();
  cache.beginWrite(["k"]);
  cache.beginWrite(["k"]);
  cache.endWrite(["k"]);
  cache.put("k", resource("1"), cache.generation);
  expect(cache.get("k")).toBeUndefined();
  cache.endWrite(["k"]);
  cache.put("k", resource("2"), cache.generation);
  expect(cache.get("k")?.json).toBe("2");
});
