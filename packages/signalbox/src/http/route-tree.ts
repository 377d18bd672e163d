/** Finds the route of a path with one map look-up per segment. Literal segments take precedence over parameters. */
import type { Route, RouteMethod } from "./route.ts";

interface RouteEntry {
  readonly route: Route;
  readonly parameters: readonly string[] | null;
}

interface Node {
  readonly literals: Map<string, Node>;
  parameter: { readonly name: string; readonly node: Node } | undefined;
  readonly routes: Map<string, RouteEntry>;
  /** Methods of the path, for `Allow`. */
  readonly allowed: string[];
}

export interface RouteMatch {
  readonly route: Route | undefined;
  readonly params: Record<string, string>;
  /** The query parameters of the route; null if its handler checks them. */
  readonly parameters: readonly string[] | null;
  /** Methods of the path, for `Allow`. */
  readonly allowed: readonly string[];
}

export class RouteTree {
  readonly #root = createNode();

  add(route: Route, parameters: readonly string[] | null = null): void {
    let node = this.#root;
    for (const segment of route.path.slice(1).split("/")) {
      node = segment.startsWith("{")
        ? parameterChild(node, segment.slice(1, -1))
        : literalChild(node, segment);
    }
    if (node.routes.has(route.method)) throw new Error(`two routes for ${route.method} ${route.path}`);
    node.routes.set(route.method, { route, parameters });
    node.allowed.push(...(route.method === "GET" ? ["GET", "HEAD"] : [route.method]));
  }

  /** Returns undefined if no route has this path. */
  match(method: string, segments: readonly string[]): RouteMatch | undefined {
    // A literal: V8 stores an object of `Object.create(null)` as a hash table, which is slower.
    const params = { __proto__: null } as unknown as Record<string, string>;
    const node = find(this.#root, segments, 0, params);
    if (node === undefined) return undefined;
    const wanted = (method === "HEAD" ? "GET" : method) as RouteMethod;
    const entry = node.routes.get(wanted);
    return { route: entry?.route, params, parameters: entry?.parameters ?? null, allowed: node.allowed };
  }
}

/** Tries the literal first, then the parameter. */
function find(
  node: Node,
  segments: readonly string[],
  depth: number,
  params: Record<string, string>,
): Node | undefined {
  const segment = segments[depth];
  if (segment === undefined) return node.routes.size > 0 ? node : undefined;
  const literal = node.literals.get(segment);
  const found = literal === undefined ? undefined : find(literal, segments, depth + 1, params);
  if (found !== undefined) return found;
  if (node.parameter === undefined) return undefined;
  const below = find(node.parameter.node, segments, depth + 1, params);
  if (below !== undefined) params[node.parameter.name] = segment;
  return below;
}

function literalChild(node: Node, segment: string): Node {
  let child = node.literals.get(segment);
  if (child === undefined) {
    child = createNode();
    node.literals.set(segment, child);
  }
  return child;
}

function parameterChild(node: Node, name: string): Node {
  node.parameter ??= { name, node: createNode() };
  if (node.parameter.name !== name)
    throw new Error(`a path position has two parameter names: {${node.parameter.name}} and {${name}}`);
  return node.parameter.node;
}

function createNode(): Node {
  return { literals: new Map(), parameter: undefined, routes: new Map(), allowed: [] };
}
