import { expect, it } from "vitest";
import type { Route } from "./route.ts";
import { RouteTree } from "./route-tree.ts";

const route = (method: Route["method"], path: string): Route => ({
  method,
  path,
  access: "root",
  summary: "",
  handler: () => ({}),
});

function treeOf(...routes: [Route["method"], string][]): RouteTree {
  const tree = new RouteTree();
  for (const [method, path] of routes) tree.add(route(method, path));
  return tree;
}

it("tries a literal segment first, then the parameter", () => {
  const tree = treeOf(
    ["GET", "/a/{id}"],
    ["GET", "/a/fixed"],
    ["GET", "/a/{id}/below"],
    ["GET", "/a/fixed/other"],
  );
  expect(tree.match("GET", ["a", "fixed"])?.route?.path).toBe("/a/fixed");
  expect(tree.match("GET", ["a", "fixed", "below"])).toMatchObject({
    route: { path: "/a/{id}/below" },
    params: { id: "fixed" },
  });
  expect(tree.match("GET", ["a", "x"])?.params).toMatchObject({ id: "x" });
  expect(tree.match("GET", ["a"])).toBeUndefined();
  expect(tree.match("GET", ["a", "x", "y"])).toBeUndefined();
});

it("returns the methods of a path", () => {
  const tree = treeOf(["GET", "/a"], ["POST", "/a"]);
  expect(tree.match("DELETE", ["a"])).toMatchObject({ route: undefined, allowed: ["GET", "HEAD", "POST"] });
  expect(tree.match("HEAD", ["a"])?.route?.method).toBe("GET");
});

it("stores parameters without a prototype", () => {
  const params = treeOf(["GET", "/a/{id}"]).match("GET", ["a", "__proto__"])?.params;
  expect(params?.["id"]).toBe("__proto__");
  expect(params !== undefined && "toString" in params).toBe(false);
});

it("refuses two routes with the same method and path, and two names for one position", () => {
  expect(() => treeOf(["GET", "/a"], ["GET", "/a"])).toThrow("two routes");
  expect(() => treeOf(["GET", "/a/{x}"], ["POST", "/a/{y}"])).toThrow("{x} and {y}");
});
